"""What every method promises, on one tiny problem."""

import asyncio
import collections
import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import image_task
from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import models

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12, 7)
_COHORTS = ([0, 1, 2], [3], [2, 0])


def _with_embedding(build, **options):
  """The builder, of a model with an embedding."""

  def model_fn():
    tf.keras.utils.set_random_seed(0)
    return models.mlp_cffl_adult(
      (linear_task.NUM_FEATURES,), linear_task.NUM_CLASSES
    )

  def build_with_embedding(unused_model_fn, **arguments):
    return build(model_fn, **options, **arguments)

  return build_with_embedding


def _build_fed_mdfg(model_fn, **arguments):
  """Whose clients do not train, for any number of epochs."""
  return algorithms.build_fed_mdfg(model_fn, **{**arguments, 'local_epochs': 1})


def _build_fed_rdn(model_fn, **arguments):
  """Of images, with the statistics of all clients but the first."""
  del model_fn  # It takes vectors.
  rows = np.array([[np.nan], [0.1], [0.2], [0.3]], np.float32)
  return algorithms.build_fed_rdn(
    image_task.model_fn,
    statistics=collections.OrderedDict(mean=rows, std=rows),
    **arguments,
  )


_VALIDATION = (np.eye(4, dtype=np.float32), np.arange(4) % 3)
_BUILDERS = {
  'fed_avg': algorithms.build_fed_avg,
  'ditto': algorithms.build_ditto,
  'fedaboost': algorithms.build_fedaboost,
  'cffl': functools.partial(
    algorithms.build_cffl,
    validation=_VALIDATION,
    upload_rate=0.5,
  ),
  # With all that clients can be sent.
  'corefed': _with_embedding(algorithms.build_corefed, alignment='client'),
  'q_fed_avg': algorithms.build_q_fed_avg,
  'fed_mgda': algorithms.build_fed_mgda,
  'fed_mdfg': _build_fed_mdfg,
  'fed_prox': algorithms.build_fed_prox,
  'fed_rdn': _build_fed_rdn,
  'fedquad': _with_embedding(algorithms.build_fedquad),
  'triplet_fl': _with_embedding(algorithms.build_triplet_fl),
  'quadruplet_fl': _with_embedding(algorithms.build_quadruplet_fl),
  'supcon_fl': _with_embedding(algorithms.build_supcon_fl),
  'moon': _with_embedding(algorithms.build_moon),
  'fedakd': algorithms.build_fedakd,
  'fedakd_up_down': functools.partial(algorithms.build_fedakd, order='up_down'),
  'scaffold': algorithms.build_scaffold,
  'cgsv': algorithms.build_cgsv,
  'fed_ave': functools.partial(
    algorithms.build_fed_ave, validation=_VALIDATION
  ),
  'fed_sac': _with_embedding(
    algorithms.build_fed_sac,
    validation=_VALIDATION,
    contributions=(0.2, 0.4, 0.9, 0.5),
    importance_every=2,
  ),
  'pfed_ck': _with_embedding(algorithms.build_pfed_ck),
  'fed_dc': algorithms.build_fed_dc,
  'fed_as': _with_embedding(algorithms.build_fed_as),
  'fed_mpr': algorithms.build_fed_mpr,
  'standalone': algorithms.build_standalone,
  'round_robin_fed_avg': functools.partial(
    algorithms.build_round_robin_fed_avg, total_examples=sum(_SIZES)
  ),
  'dssgd': functools.partial(algorithms.build_dssgd, upload_rate=0.5),
}


@functools.cache
def _process(name):
  return _BUILDERS[name](
    linear_task.model_fn,
    num_clients=len(_SIZES),
    client_optimizer=linear_task.sgd(0.1),
    local_epochs=2,
    batch_size=3,
  )


@functools.cache
def _client(client_id, images):
  data = linear_task.make_clients(_SIZES)[client_id]
  if images:
    data = image_task.as_images(data)
  return linear_task.client_data(client_id, data)


def _data(process, cohort):
  examples_type = process.next.type_signature.parameter[1].member['train']
  images = len(examples_type.element['x'].shape) == 4
  return [_client(i, images) for i in cohort]


def _run(process, state, cohorts):
  outputs = []
  for cohort in cohorts:
    outputs.append(process.next(state, _data(process, cohort)))
    state = outputs[-1].state
  return outputs


# What comes from the process being built anew is the same for all: these have
# every piece that a method can be made of.
_BUILT_TWICE = ('fed_avg', 'fedaboost', 'cffl', 'corefed', 'fedquad', 'fedakd')


@pytest.mark.parametrize('name', _BUILT_TWICE)
def test_a_new_process_gives_the_same(name):
  process, again = _process(name), _process.__wrapped__(name)
  linear_task.assert_equal(
    _run(process, process.initialize(), _COHORTS),
    _run(again, again.initialize(), _COHORTS),
  )


@pytest.mark.parametrize('name', _BUILDERS)
class TestEveryMethod:
  def test_is_a_learning_process_whose_state_keeps_its_type(self, name):
    process = _process(name)
    assert isinstance(process, tff.learning.templates.LearningProcess)
    tff.test.assert_types_identical(
      process.initialize.type_signature.result,
      process.next.type_signature.result.state,
    )

  def test_is_finite(self, name):
    process = _process(name)
    for output in _run(process, process.initialize(), _COHORTS):
      for value in tf.nest.flatten(output):
        assert np.all(np.isfinite(value))

  def test_repeats_bit_for_bit(self, name):
    process = _process(name)
    first = _run(process, process.initialize(), _COHORTS)
    linear_task.assert_equal(
      first, _run(process, process.initialize(), _COHORTS)
    )

  def test_goes_on_from_a_saved_state(self, name, tmp_path):
    process = _process(name)
    whole = _run(process, process.initialize(), _COHORTS)
    managed = tff.program.FileProgramStateManager(tmp_path)

    async def save_and_load():
      await managed.save(whole[0].state, 1)
      return await managed.load(1, process.initialize())

    state = asyncio.run(save_and_load())
    linear_task.assert_equal(whole[1:], _run(process, state, _COHORTS[1:]))

  def test_the_order_of_clients_does_not_matter_much(self, name):
    process = _process(name)
    state = process.initialize()
    (one,) = _run(process, state, [[0, 1, 2]])
    (other,) = _run(process, state, [[2, 0, 1]])
    for a, b in zip(
      tf.nest.flatten(one.state), tf.nest.flatten(other.state), strict=True
    ):
      np.testing.assert_allclose(a, b, atol=1e-6)

  def test_weights_can_be_set(self, name):
    process = _process(name)
    state = process.initialize()
    weights = tf.nest.map_structure(
      lambda w: w + 1, process.get_model_weights(state)
    )
    state = process.set_model_weights(state, weights)
    linear_task.assert_equal(process.get_model_weights(state), weights)

  def test_runs_in_the_simulation_loop_of_tff(self, name):
    process = _process(name)
    released = {}

    class Releases(tff.program.ReleaseManager):
      async def release(self, value, key):
        released[key] = value

    # TFF asks for the thread's loop, which `asyncio.run` elsewhere closes.
    asyncio.set_event_loop(asyncio.new_event_loop())
    state = tff.simulation.run_training_process(
      training_process=process,
      training_selection_fn=lambda r: _data(process, _COHORTS[r - 1]),
      total_rounds=2,
      metrics_managers=[Releases()],
    )
    expected = _run(process, process.initialize(), _COHORTS[:2])
    linear_task.assert_equal(state, expected[-1].state)
    assert {1, 2} <= set(released)
