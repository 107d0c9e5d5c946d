"""Keras losses of the papers."""

from tff_fair.losses.focal import FocalLoss
from tff_fair.losses.focal import focal_loss

__all__ = ['FocalLoss', 'focal_loss']
