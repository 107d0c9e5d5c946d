import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair.algorithms.baselines import fed_mpr

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_process = functools.partial(
  linear_task.build_process, algorithms.build_fed_mpr, num_clients=6
)


class TestPrune:
  def test_fractions_by_hand(self):
    weights = [0.05, -0.3, 0.01, 0.8, 0.2, -0.02, 0.4, 0.6, -0.7, 0.1]
    for fraction, pruned in (
      (0.19, [2]),
      (0.2, [2, 5]),
      (0.55, [2, 5, 0, 9, 4]),
      (0.95, [0, 1, 2, 4, 5, 6, 7, 8, 9]),
      (0.09, []),
    ):
      expected = np.array(weights, np.float32)
      expected[pruned] = 0
      (found,) = fed_mpr.prune([tf.constant(weights)], fraction)
      np.testing.assert_array_equal(found, expected)
    # .29 * 100 is 28.999...
    (found,) = fed_mpr.prune([tf.range(1.0, 101.0)], 0.29)
    np.testing.assert_array_equal(found, [0] * 29 + list(range(30, 101)))

  def test_of_equal_magnitudes_the_lower_index_stays(self):
    (found,) = fed_mpr.prune([tf.constant([0.5, -1.0, 1.0, -1.0, 2.0])], 0.6)
    np.testing.assert_array_equal(found, [0, -1, 0, 0, 2])

  def test_all_tensors_are_ranked_together(self):
    weights = [
      tf.constant([[1.0, -5.0], [0.2, 4.0]]),
      tf.constant([0.1, 3.0]),
      tf.constant([7.0, 6.0, -8.0, -0.3]),
    ]
    kernel, bias, other = fed_mpr.prune(weights, 0.4)
    np.testing.assert_array_equal(kernel, [[0, -5], [0, 4]])
    np.testing.assert_array_equal(bias, [0, 3])
    np.testing.assert_array_equal(other, [7, 6, -8, 0])

  def test_non_finite_weights_are_not_hidden(self):
    for bad in (np.nan, np.inf):
      (found,) = fed_mpr.prune([tf.constant([1.0, bad, 0.1, 2.0])], 0.5)
      np.testing.assert_array_equal(found, np.float32([1, bad, 0.1, 2]))


def _fed_mpr(rounds, stages):
  """The velocity is carried from stage to stage."""
  w = linear_task.start()
  for clients in rounds:
    models = []
    for data in clients.values():
      model, velocity = w, 0.0
      for epochs, number in stages:
        model, velocity, _ = reference.descend(
          functools.partial(reference.LINEAR.loss, data=data),
          *(model, 0.1, epochs, 0.9, velocity),
        )
        model = reference.largest(model, len(model) - number)
      models.append(model)
    # The mean over clients, zeros included.
    w = reference.mean(models)
    yield {'weights': w}


def test_three_rounds():
  """Of 15 weights 2, then 3 more, then 2 more go after so many epochs."""
  process = _process(
    client_optimizer=linear_task.sgd(0.1, momentum=0.9),
    **{'prune_fraction': 0.5, 'local_epochs': 4, 'prune_stages': 3},
  )
  expected = functools.partial(_fed_mpr, stages=[(2, 2), (1, 5), (1, 7)])
  linear_task.assert_rounds(process, expected, linear_task.rounds())
  # A client alone sends exactly its zeros.
  (output,) = linear_task.assert_rounds(
    process, expected, linear_task.rounds([[1]])
  )
  assert np.sum(linear_task.weights(process, output.state) == 0) == 7


def test_a_client_that_diverged_is_rejected_and_not_pruned():
  """Even if all of its values that are not finite could be pruned."""
  process = _process(prune_fraction=0.95)
  clients = linear_task.make_clients(linear_task.SIZES)
  clients[2].x[0, 0], clients[3].x[0, 0] = np.inf, np.nan
  outputs = [
    linear_task.run(process, clients, [cohort])
    for cohort in ([0, 1], [0, 3, 2, 1])
  ]
  assert outputs[1].metrics['client_work']['num_rejected_clients'] == 2
  linear_task.assert_equal(
    *(process.get_model_weights(o.state) for o in outputs)
  )


def test_scales_and_shifts_are_pruned_and_statistics_are_not():
  """All but one weight are pruned: the scales are 1, the others smaller."""
  process = algorithms.build_fed_mpr(
    linear_task.batch_norm_model_fn,
    num_clients=1,
    client_optimizer=linear_task.sgd(1e-3),
    prune_fraction=0.95,
  )
  (data,) = linear_task.make_clients((8,))
  state = linear_task.run(process, [data], [[0]]).state
  weights = process.get_model_weights(state)
  # floor(.95 * (4 + 4 + 12 + 3)) of 23.
  scale, *others = weights.trainable
  assert np.sum(scale == 0) == 2 and not any(w.any() for w in others)
  mean, _ = weights.non_trainable
  np.testing.assert_allclose(mean, data.x.mean(axis=0) / 2, rtol=1e-4)


def test_stages_need_epochs():
  linear_task.assert_refused(
    _process, ('prune_stages', 3, r'in 1\.\.2, found 3'), local_epochs=2
  )
