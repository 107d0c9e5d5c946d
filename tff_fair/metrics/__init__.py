"""Fairness metrics, and the evaluation of models on clients' data."""

from tff_fair.metrics.distances import accuracy_distances
from tff_fair.metrics.distances import angle
from tff_fair.metrics.distances import manhattan
from tff_fair.metrics.evaluation import ClientScores
from tff_fair.metrics.evaluation import Evaluator
from tff_fair.metrics.evaluation import ServerEvaluator
from tff_fair.metrics.evaluation import embeddings
from tff_fair.metrics.evaluation import nearest_centroid_logits
from tff_fair.metrics.evaluation import score_predictions
from tff_fair.metrics.fairness import cf_coefficient
from tff_fair.metrics.fairness import client_statistics
from tff_fair.metrics.fairness import confusion_matrices
from tff_fair.metrics.fairness import fairness_variance
from tff_fair.metrics.fairness import macro_f1
from tff_fair.metrics.fairness import mean_with_interval

__all__ = [
  'ClientScores',
  'Evaluator',
  'ServerEvaluator',
  'accuracy_distances',
  'angle',
  'cf_coefficient',
  'client_statistics',
  'confusion_matrices',
  'embeddings',
  'fairness_variance',
  'macro_f1',
  'manhattan',
  'mean_with_interval',
  'nearest_centroid_logits',
  'score_predictions',
]
