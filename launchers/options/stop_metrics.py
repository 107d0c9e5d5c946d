"""The columns of metrics.csv by which `--stop_after` can judge a run.

Nothing here imports TensorFlow.
"""

_SCORES = ('accuracy', 'f1', 'f1_own_labels')
_STATISTICS = ('mean', 'median', 'min', 'worst10', 'max', 'variance', 'jain')

OF_CLIENTS = tuple(
  f'client_{score}_{statistic}'
  for score in _SCORES
  for statistic in _STATISTICS
)
OF_GLOBAL_MODEL = ('global_accuracy', 'global_f1', 'global_loss')
# Of the round's training data: the only one that is not of test data.
OF_TRAINING = ('train_loss',)

NAMES = (*OF_CLIENTS, *OF_GLOBAL_MODEL, *OF_TRAINING)


def is_lower_better(name: str) -> bool:
  """Returns whether a smaller value of the column is better.

  Args:
    name: One of `NAMES`.
  """
  return name.endswith(('_loss', '_variance'))
