import numpy as np

from tff_fair import metrics
from tff_fair.launchers.runs import evaluation
from tff_fair.launchers.runs import last_rounds


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


def test_the_rounds():
  for number, expected in ((None, [5]), (1, [5]), (3, [3, 4, 5])):
    settings = {'rounds': 5, 'score_last': number}
    assert list(last_rounds.averaged_rounds(settings)) == expected


def test_means_replace_the_accuracies_of_the_clients_models():
  one, other = _scores([0.2, 0.4]), _scores([0.6, 0.8])
  mean = np.array([0.5, 0.1])
  for scores, model in (
    ({'global': one}, 'global'),
    ({'global': other, 'personal': one}, 'personal'),
  ):
    found = last_rounds.with_accuracies(scores, mean)
    assert found == {**scores, model: one._replace(accuracy=mean)}
    columns = evaluation.metric_columns(found, [True, True])
    assert columns['client_accuracy_max'] == 0.5
    assert columns['client_f1_max'] == 0.2
    assert columns['global_accuracy'] == 0.5
