"""Keras losses of the papers, and losses of embeddings as pure functions."""

from tff_fair.losses.alignment import contrastive_loss
from tff_fair.losses.alignment import cosines
from tff_fair.losses.alignment import normalized
from tff_fair.losses.alignment import refined
from tff_fair.losses.focal import FocalLoss
from tff_fair.losses.focal import focal_loss

__all__ = [
  'FocalLoss',
  'contrastive_loss',
  'cosines',
  'focal_loss',
  'normalized',
  'refined',
]
