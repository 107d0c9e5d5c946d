"""The evaluation of models on clients' data, and fairness measures.

The measures are those of `tff_fair.fairness`, which does not import TensorFlow.
"""

from tff_fair.fairness import against_alone
from tff_fair.fairness import cf_coefficient
from tff_fair.fairness import client_statistics
from tff_fair.fairness import confusion_matrices
from tff_fair.fairness import entropy
from tff_fair.fairness import harm_p_values
from tff_fair.fairness import jain_index
from tff_fair.fairness import macro_f1
from tff_fair.fairness import mean_with_interval
from tff_fair.fairness import minimum
from tff_fair.fairness import variance
from tff_fair.fairness import weighted_f1
from tff_fair.fairness import worst_mean
from tff_fair.metrics.distances import accuracy_distances
from tff_fair.metrics.distances import angle
from tff_fair.metrics.distances import manhattan
from tff_fair.metrics.evaluation import ClientScores
from tff_fair.metrics.evaluation import Evaluator
from tff_fair.metrics.evaluation import ServerEvaluator
from tff_fair.metrics.evaluation import embeddings
from tff_fair.metrics.evaluation import nearest_centroid_logits
from tff_fair.metrics.evaluation import score_predictions

__all__ = [
  'ClientScores',
  'Evaluator',
  'ServerEvaluator',
  'accuracy_distances',
  'against_alone',
  'angle',
  'cf_coefficient',
  'client_statistics',
  'confusion_matrices',
  'embeddings',
  'entropy',
  'harm_p_values',
  'jain_index',
  'macro_f1',
  'manhattan',
  'mean_with_interval',
  'minimum',
  'nearest_centroid_logits',
  'score_predictions',
  'variance',
  'weighted_f1',
  'worst_mean',
]
