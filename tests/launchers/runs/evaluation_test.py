import dataclasses
import types

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import metrics
from tff_fair import splits
from tff_fair import tasks
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import evaluation


def _scores(accuracy):
  accuracy = np.array(accuracy)
  return metrics.ClientScores(
    num_examples=np.full(len(accuracy), 10),
    accuracy=accuracy,
    f1=accuracy / 2,
    f1_own_labels=accuracy / 4,
    f1_weighted=accuracy / 8,
    loss=1 - accuracy,
    pooled={'accuracy': 0.5, 'f1': 0.4, 'loss': 0.3},
  )


def test_clients_without_data_do_not_count():
  columns = evaluation.metric_columns(
    {'global': _scores([0.2, 0.4, 0.9])}, is_scored=[True, True, False]
  )
  assert columns['global_loss'] == 0.3
  assert columns['client_accuracy_max'] == 0.4
  assert columns['client_accuracy_min'] == 0.2
  assert columns['client_accuracy_worst10'] == 0.2
  assert columns['client_accuracy_mean'] == pytest.approx(0.3)
  assert columns['client_accuracy_jain'] == pytest.approx(0.9)
  assert columns['client_f1_median'] == pytest.approx(0.15)
  assert columns['client_f1_own_labels_variance'] == pytest.approx(0.025**2)
  assert columns['client_f1_weighted_max'] == pytest.approx(0.05)


def test_clients_with_few_test_examples_are_counted():
  sizes = (0, 9, 10, 3, 2)
  task = types.SimpleNamespace(
    has_server_test=False,
    splits=[types.SimpleNamespace(test=range(size)) for size in sizes],
  )
  # The last one is a free rider.
  found = evaluation.note_of_few_examples(task, [True] * 4 + [False])
  assert found.startswith(
    '2 of 3 clients have fewer than 10 test examples, the fewest 3: '
  )
  assert not evaluation.note_of_few_examples(task, [True, False] * 2 + [False])
  task.has_server_test = True
  assert not evaluation.note_of_few_examples(task, [True] * 5)


def test_unseen_clients_have_columns_of_their_own():
  trained = {'global': _scores([0.2, 0.4, 0.9])}
  columns = evaluation.metric_columns(trained, is_scored=[True] * 3)
  unseen = _scores([0.5, np.nan, 0.7])
  unseen = {'unseen': unseen._replace(num_examples=np.array([9, 0, 9]))}
  found = evaluation.metric_columns({**trained, **unseen}, [True] * 3)
  assert found == pytest.approx(
    {
      **columns,
      'unseen_accuracy_mean': 0.6,
      'unseen_accuracy_min': 0.5,
      'unseen_accuracy_worst10': 0.5,
    }
  )


def test_free_riders_do_not_count_after_fine_tuning():
  scores = {
    'global': _scores([0.2, 0.4, 0.1]),
    'fine_tuned': _scores([0.5, 0.7, 0.1]),
  }
  columns = evaluation.metric_columns(scores, [True, True, False])
  assert columns['fine_tuned_accuracy_mean'] == pytest.approx(0.6)
  assert columns['fine_tuned_accuracy_min'] == 0.5
  found = evaluation.client_columns(scores)
  assert found['fine_tuned_accuracy'].tolist() == [0.5, 0.7, 0.1]


def test_where_a_model_gives_nan_the_others_are_no_mean():
  nan = np.nan
  scores = {
    'global': _scores([0.2, nan, 0.4, nan]),
    'unseen': _scores([nan, 0.5]),
  }
  sizes = np.array([10, 10, 10, 0])
  for model in scores:
    count = len(scores[model].accuracy)
    scores[model] = scores[model]._replace(num_examples=sizes[:count])
  columns = evaluation.metric_columns(scores, [True] * 4)
  for name in ('client_accuracy_mean', 'client_f1_jain', 'unseen_accuracy_min'):
    assert np.isnan(columns[name])
  # Of a free rider, or without examples, it says nothing.
  columns = evaluation.metric_columns(scores, [True, False, True, True])
  assert columns['client_accuracy_mean'] == pytest.approx(0.3)


def test_the_worst_client_is_named():
  scores = {'global': _scores([np.nan, 0.4, 0.2, 0.1])}
  is_scored = [True, True, True, False]
  names = ['', 'b', 'North\n"c"', 'rider']
  for found, expected in (
    (evaluation.worst_client(scores, is_scored, ()), '0.2000, client 2'),
    (
      evaluation.worst_client(scores, is_scored, names),
      '0.2000, client 2 (North "c")',
    ),
    # Nobody is worse than another.
    (evaluation.worst_client(scores, [False, True, False, False], names), ''),
    (evaluation.worst_client(scores, [False] * 4, names), ''),
  ):
    assert found == expected


def _with_losses(losses, num_examples=10):
  losses = np.array(losses)
  return _scores(np.full(len(losses), 0.5))._replace(
    loss=losses, num_examples=np.broadcast_to(num_examples, losses.shape)
  )


@pytest.mark.parametrize(
  ('scores', 'names', 'message'),
  [
    ({'global': _with_losses([np.nan] * 3)}, (), 'the global model'),
    (
      {'global': _with_losses([1.0] * 3), 'personal': _with_losses([1, 2, 3])},
      (),
      None,
    ),
    (
      {
        'global': _with_losses([1.0] * 3),
        'personal': _with_losses([np.nan, 1e30, np.inf]),
      },
      ['Ulm', 'Bonn', 'Jena\n'],
      'the personal model of client 0 (Ulm), client 2 (Jena)',
    ),
    (
      {'global': _with_losses([1.0] * 3), 'unseen': _with_losses([1, np.nan])},
      (),
      'the global model on an unseen client',
    ),
    (
      {
        'global': _with_losses([1.0] * 3),
        'fine_tuned': _with_losses([1, 2, np.inf]),
      },
      ['Ulm', 'Bonn', 'Jena'],
      'the fine-tuned model of client 2 (Jena)',
    ),
    (
      {
        'global': _with_losses([1.0] * 3),
        'fine_tuned_unseen': _with_losses([np.nan]),
      },
      (),
      'the fine-tuned model on an unseen client',
    ),
    # Without test examples there is no loss.
    ({'global': _with_losses([1, np.nan, 1], [9, 0, 9])}, (), None),
  ],
)
def test_a_loss_that_is_not_finite_is_refused(scores, names, message):
  if message is None:
    return evaluation.check_finite(scores, [True] * 3, names, 4)
  with pytest.raises(errors.DivergedError) as error:
    evaluation.check_finite(scores, [True] * 3, names, 4)
  assert f': the loss of {message} is not finite after round 4;' in str(
    error.value
  )
  return None


def test_free_riders_and_centroids_have_any_loss():
  scores = {
    'global': _with_losses([1.0, 1, 1]),
    'personal': _with_losses([1, 1, np.inf]),
  }
  evaluation.check_finite(scores, [True, True, False], (), 4)
  with pytest.raises(errors.DivergedError, match='of client 2 is'):
    evaluation.check_finite(scores, [True] * 3, (), 4)
  scores = {'global': _with_losses([np.nan] * 3)}
  evaluation.check_finite(scores, [True] * 3, (), 4, has_global_loss=False)
  # But it has scores.
  useless = scores['global']._replace(accuracy=np.array([0.5, np.nan, 0.5]))
  with pytest.raises(
    errors.DivergedError, match='an embedding of the global model is not finite'
  ):
    evaluation.check_finite(
      {'global': useless}, [True] * 3, (), 4, has_global_loss=False
    )


def _model():
  """The embedding is the brightness; class 1 is what is brighter than 0."""
  x = tf.keras.Input([2, 2, 1])
  flat = tf.keras.layers.Flatten()(x)
  embedding = tf.keras.layers.Dense(1, use_bias=False)(flat)
  logits = tf.keras.layers.Dense(2, use_bias=False)(embedding)
  return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})


_BRIGHTNESS = tff.learning.models.ModelWeights(
  [np.full([4, 1], 0.25, np.float32), np.array([[0, 1]], np.float32)], []
)


def _task(num_clients):
  """Grey images as bright as their client's id, one to train, one to test."""
  ids = np.repeat(np.arange(num_clients), 2)
  x = np.broadcast_to(ids[:, None, None, None], [len(ids), 2, 2, 1])
  return tasks.Task(
    name='grey',
    num_classes=2,
    model_fn=_model,
    data=tasks.Examples(x.astype(np.float32), np.zeros(len(ids), np.int32)),
    splits=tuple(
      splits.Split(*np.split(np.array([2 * i, 2 * i + 1]), [1, 1]))
      for i in range(num_clients)
    ),
  )


def test_test_data_are_normalised_by_the_client_s_statistics():
  evaluator = evaluation.build_evaluator(_task(3), None)
  plain = evaluator.evaluate_global(_BRIGHTNESS)
  assert plain.accuracy.tolist() == [1, 0, 0]
  statistics = {
    'mean': np.array([[0], [1], [0.5]], np.float32),
    'std': np.ones([3, 1], np.float32),
  }
  evaluator = evaluation.build_evaluator(_task(3), statistics)
  normalised = evaluator.evaluate_global(_BRIGHTNESS)
  # Brightness 0, 0 and 1.5.
  assert normalised.accuracy.tolist() == [1, 1, 0]


def _task_with_holdouts(server=None):
  """The same images, of which a client has one of each class.

  The holdout part is of class 1, the test part of class 0.
  """
  task = _task(3)
  parts = [np.array([], np.int64), np.array([1]), np.array([0])]
  return dataclasses.replace(
    task,
    data=task.data._replace(y=np.tile([0, 1], 3).astype(np.int32)),
    splits=tuple(
      splits.Split(*(2 * i + part for part in parts)) for i in range(3)
    ),
    server=server,
  )


def test_runs_are_chosen_between_by_the_clients_holdout_parts():
  task = _task_with_holdouts()
  found = [
    evaluation.build_evaluator(task, statistics, part)
    .evaluate_global(_BRIGHTNESS)
    .accuracy.tolist()
    for part in ('test', 'holdout')
    for statistics in (
      None,
      {'mean': np.full([3, 1], 5, np.float32), 'std': np.ones([3, 1], 'f4')},
    )
  ]
  # Darker than 0 is class 0.
  assert found == [[1, 0, 0], [1, 1, 1], [0, 1, 1], [0, 0, 0]]


def test_with_a_test_set_of_the_server_its_validation_part_chooses():
  nothing = np.empty(0, np.int64)
  task = _task_with_holdouts(
    # Brightness 2 as class 1 and as class 0, and 1 as class 1.
    splits.ServerSplit(nothing, np.array([5, 4, 3]), np.array([0]))
  )
  found = evaluation.build_evaluator(task, None, 'holdout')
  accuracy = found.evaluate_global(_BRIGHTNESS).accuracy
  np.testing.assert_allclose(accuracy, [2 / 3] * 3)


class _Process:
  """Its state is that of its global model."""

  def get_model_weights(self, state):
    assert state == 'state'
    return _BRIGHTNESS


def _centroids(num_rejected_clients):
  return {
    'sums': np.array([[0.0], [6.0]]),
    'counts': np.array([1, 2]),
    'num_rejected_clients': np.int32(num_rejected_clients),
  }


def test_clients_excluded_from_the_centroids_are_counted(recwarn):
  evaluator = evaluation.build_evaluator(_task(3), None)
  message = (
    '2 clients are left out of the class centroids because their embeddings are'
    ' not finite.'
  )
  for number, messages in (
    (0, []),
    (2, [message]),
  ):
    evaluation.evaluate(
      evaluator, _Process(), 'state', lambda _, n=number: _centroids(n)
    )
    # Libraries also warn, of other kinds.
    ours = [w for w in recwarn if w.category is UserWarning]
    assert [str(warning.message) for warning in ours] == messages


def test_clients_are_judged_by_their_own_models():
  both = {'global': _scores([0.2, 0.4]), 'personal': _scores([0.6, 0.8])}
  columns = evaluation.metric_columns(both, is_scored=[True, True])
  assert columns['client_accuracy_max'] == 0.8
  assert {'global_accuracy', 'personal_accuracy'} <= set(columns)
  rows = evaluation.client_columns(both)
  assert list(rows['client_id']) == [0, 1]
  assert rows['accuracy'].tolist() == [0.6, 0.8]
  assert rows['f1'].tolist() == [0.3, 0.4]


def test_the_rounds_of_the_final_accuracies():
  for number, expected in ((None, [5]), (1, [5]), (3, [3, 4, 5])):
    settings = {'rounds': 5, 'score_last': number}
    assert list(evaluation.averaged_rounds(settings)) == expected
