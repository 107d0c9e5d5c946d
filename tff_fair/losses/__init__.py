"""The papers' losses as pure functions of tensors and as Keras losses.

An argument of the wrong kind is a TypeError; a number outside its range, or a
wrong shape, a ValueError.
"""

from tff_fair.losses.alignment import contrastive_loss
from tff_fair.losses.distillation import distillation_loss
from tff_fair.losses.focal import focal_loss
from tff_fair.losses.keras_losses import ClassicQuadrupletLoss
from tff_fair.losses.keras_losses import DistillationLoss
from tff_fair.losses.keras_losses import FocalLoss
from tff_fair.losses.keras_losses import QuadrupletLoss
from tff_fair.losses.keras_losses import SupervisedContrastiveLoss
from tff_fair.losses.keras_losses import TripletLoss
from tff_fair.losses.metric_learning import classic_quadruplet_loss
from tff_fair.losses.metric_learning import distances
from tff_fair.losses.metric_learning import model_contrastive_loss
from tff_fair.losses.metric_learning import quadruplet_loss
from tff_fair.losses.metric_learning import supervised_contrastive_loss
from tff_fair.losses.metric_learning import triplet_loss

__all__ = [
  'ClassicQuadrupletLoss',
  'DistillationLoss',
  'FocalLoss',
  'QuadrupletLoss',
  'SupervisedContrastiveLoss',
  'TripletLoss',
  'classic_quadruplet_loss',
  'contrastive_loss',
  'distances',
  'distillation_loss',
  'focal_loss',
  'model_contrastive_loss',
  'quadruplet_loss',
  'supervised_contrastive_loss',
  'triplet_loss',
]
