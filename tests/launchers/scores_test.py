import numpy as np
import pytest

from launchers import scores
from tff_fair import metrics


def _scores(accuracy):
  accuracy = np.array(accuracy)
  return metrics.ClientScores(
    num_examples=np.full(len(accuracy), 10),
    accuracy=accuracy,
    f1=accuracy / 2,
    f1_own_labels=accuracy / 4,
    loss=1 - accuracy,
    pooled={'accuracy': 0.5, 'f1': 0.4, 'loss': 0.3},
  )


def test_clients_without_data_do_not_count():
  columns = scores.metric_columns(
    {'global': _scores([0.2, 0.4, 0.9])}, has_data=[True, True, False]
  )
  assert columns['global_loss'] == 0.3
  assert columns['client_accuracy_max'] == 0.4
  assert columns['client_accuracy_mean'] == pytest.approx(0.3)
  assert columns['client_f1_median'] == pytest.approx(0.15)
  assert columns['client_f1_own_labels_variance'] == pytest.approx(0.025**2)


def test_clients_are_judged_by_their_own_models():
  both = {'global': _scores([0.2, 0.4]), 'personal': _scores([0.6, 0.8])}
  columns = scores.metric_columns(both, has_data=[True, True])
  assert columns['client_accuracy_max'] == 0.8
  assert {'global_accuracy', 'personal_accuracy'} <= set(columns)
  rows = scores.client_columns(both)
  assert list(rows['client_id']) == [0, 1]
  assert rows['accuracy'].tolist() == [0.6, 0.8]
  assert rows['f1'].tolist() == [0.3, 0.4]
