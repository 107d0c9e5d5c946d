import numpy as np
import pytest
import tensorflow as tf

from tff_fair import splits
from tff_fair import tasks


def _task(labels_of_clients, free_riders):
  """Clients whose training examples have the labels given."""
  labels = np.concatenate(labels_of_clients).astype(np.int32)
  ends = np.cumsum([len(labels) for labels in labels_of_clients])
  nothing = np.empty(0, np.int64)
  parts = np.split(np.arange(len(labels)), ends[:-1])
  task = tasks.Task(
    name='tiny',
    num_classes=4,
    model_fn=tf.keras.Model,
    data=tasks.Examples(np.zeros((len(labels), 1), np.float32), labels),
    splits=tuple(splits.Split(part, nothing, nothing) for part in parts),
  )
  return task.with_free_riders(free_riders)


# Sizes with the mean 3 and the median 1, classes with the mean 2 and median 1.
_CLIENTS = [[0], [0], [0, 1, 2, 3, 0, 0, 0]]


def test_free_riders_state_what_is_usual():
  for scenario, expected in [
    ('size', [1, 1, 7, 3, 3]),
    ('class', [1, 1, 4, 1, 1]),
  ]:
    amounts = tasks.stated_amounts(_task(_CLIENTS, 2), scenario)
    assert amounts == expected
    assert all(type(amount) is int for amount in amounts)
    assert tasks.stated_amounts(_task(_CLIENTS, 0), scenario) == expected[:3]


def test_rounds_half_up_and_no_further():
  # Means 4/3 and 3/2.
  assert tasks.stated_amounts(_task([[0], [0], [0, 0]], 1), 'size')[-1] == 1
  assert tasks.stated_amounts(_task([[0], [0, 0]], 1), 'size')[-1] == 2


def test_only_training_examples_count():
  task = tasks.build_task('digits', num_clients=3, partition='equal')
  expected = [task.num_train(i) for i in range(3)]
  assert tasks.stated_amounts(task, 'size') == expected
  with pytest.raises(ValueError, match="^scenario must .*found 'sizes'"):
    tasks.stated_amounts(task, 'sizes')
