"""What every method promises, checked on one small problem.

A process is built and traced once; all checks use it.
"""

import asyncio
import collections
import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import checkpoints
from tff_fair import models

SIZES = (5, 9, 12, 7)
VALIDATION = (np.eye(4, dtype=np.float32), np.arange(4) % 3)

_COHORTS = ([0, 1, 2], [3], [2, 0])
# Clients in the place of 1 and 3 whose data are not finite and without data.
_BROKEN, _EMPTY = 1, 3
# No honest update of this problem is as long.
_BOUND = 20.0
# Behind a hidden layer more would soon overflow, and be rejected.
_HUGE, _HUGE_BEHIND_HIDDEN = 1e18, 1e8
# They clip each entry, or send nothing.
_SEND_LITTLE = ('cffl', 'dssgd', 'standalone')
# How far a client that is alone and clipped moves the model, if not by the
# bound: 7 entries of 0.01; a step of fixed length; half of it, by the line
# search; its update and the mean over 4 clients of drifts.
_MOVED = {
  **dict.fromkeys(('cffl', 'dssgd'), 0.01 * 7**0.5),
  **{'standalone': 0.0, 'fed_mgda': 0.1, 'cgsv': 0.5, 'fed_ave': 0.5},
  **{'fed_mdfg': _BOUND / 2, 'fed_dc': _BOUND + _BOUND / 4},
}
# What a row remembers of a bounded update, and its norm after one round. The
# control variates are it by the 2 steps of 0.1.
_REMEMBER = {
  'scaffold': ('control', _BOUND / 0.2),
  'fed_dc': ('drift', _BOUND),
  'pfed_ck': ('interaction', _BOUND),
}
# Their rows are made of what others send, too.
_SHARED_ROWS = (
  'afl',
  'cffl',
  'cgsv',
  'dssgd',
  'fed_ave',
  'fed_sac',
  'round_robin_fed_avg',
)
# Their servers renew all rows.
_RENEW_ROWS = ('afl', 'fed_sac')
# These rate the clients, including those that are dropped.
_RATE_DROPPED = ('cffl', 'cgsv', 'fed_ave')


def with_embedding(build, **options):
  """The builder for a model with an embedding."""

  def model_fn():
    tf.keras.utils.set_random_seed(0)
    return models.mlp_cffl_adult(
      (linear_task.NUM_FEATURES,), linear_task.NUM_CLASSES
    )

  def build_with_embedding(unused_model_fn, **arguments):
    return build(model_fn, **options, **arguments)

  return build_with_embedding


def build_fed_mdfg(model_fn, **arguments):
  """Its clients do not train, so it has no number of epochs."""
  return algorithms.build_fed_mdfg(model_fn, **{**arguments, 'local_epochs': 1})


def build_fair_fed(model_fn, **arguments):
  """For two classes, and clients whose data have groups of people."""
  del model_fn  # For three classes.
  return algorithms.build_fair_fed(linear_task.binary_model_fn, **arguments)


def build_fed_rdn(model_fn, **arguments):
  """For images, with statistics of all clients but the first."""
  del model_fn  # For vectors.
  rows = np.array([[np.nan], [0.1], [0.2], [0.3]], np.float32)
  return algorithms.build_fed_rdn(
    linear_task.image_model_fn,
    statistics=collections.OrderedDict(mean=rows, std=rows),
    **arguments,
  )


def build(builder):
  """The process of a builder for this problem."""
  rounds = []

  def learning_rate_fn(number):
    rounds.append(number)
    return tf.constant(0.1)

  process = builder(
    linear_task.model_fn,
    num_clients=len(SIZES),
    client_optimizer=linear_task.sgd(0.2),
    client_learning_rate_fn=learning_rate_fn,
    local_epochs=2,
    batch_size=3,
    max_update_norm=_BOUND,
  )
  assert rounds  # The function is in use.
  return process


def check(name, builder, folder):
  """Checks everything that all methods have in common."""
  process = build(builder)
  state_type = process.initialize.type_signature.result
  tff.test.assert_types_identical(
    state_type, process.next.type_signature.result.state
  )
  whole = run(process, process.initialize())
  for value in tf.nest.flatten(whole):
    assert np.isfinite(value).all()
  for output in whole:
    counts = output.metrics['client_work']
    assert counts['num_empty_clients'] == counts['num_rejected_clients'] == 0
    assert counts['num_clipped_clients'] == 0
  _check_loop_and_resume(process, whole, folder)
  _check_order(process, whole[0])
  _check_dropped(process, whole[0].state, name)
  _check_bounded(process, name)
  _check_keras(process, whole[-1].state)
  with pytest.raises(RuntimeError, match='once a round, found the ids'):
    run(process, whole[0].state, [[0, 2, 0]])
  weights = tf.nest.map_structure(
    lambda w: w + 1, process.get_model_weights(whole[0].state)
  )
  state = process.set_model_weights(whole[0].state, weights)
  linear_task.assert_equal(process.get_model_weights(state), weights)


def run(process, state, cohorts=_COHORTS):
  """The outputs of a round with each cohort."""
  outputs = []
  for cohort in cohorts:
    outputs.append(process.next(state, _data(process, cohort)))
    state = outputs[-1].state
  return outputs


def _check_loop_and_resume(process, whole, folder):
  """Rounds repeat bit for bit in TFF's loop, stopped after the first one."""
  released = tff.program.MemoryReleaseManager()
  # TFF takes the thread's event loop, which `asyncio.run` may have closed.
  asyncio.set_event_loop(asyncio.new_event_loop())
  for total_rounds in (1, len(_COHORTS)):
    state = tff.simulation.run_training_process(
      training_process=process,
      training_selection_fn=lambda r: _data(process, _COHORTS[r - 1]),
      total_rounds=total_rounds,
      metrics_managers=[released],
      program_state_manager=checkpoints.SafetensorsStateManager(folder),
      rounds_per_saving_program_state=1,
    )
  linear_task.assert_equal(state, whole[-1].state)
  for number, output in enumerate(whole, 1):
    for part in ('client_work', 'aggregator'):
      linear_task.assert_equal(
        released.values()[number][part], output.metrics[part]
      )


def _check_order(process, output):
  """The order of the clients matters for rounding only."""
  (other,) = run(process, process.initialize(), [[2, 0, 1]])
  linear_task.assert_close(other.state, output.state)


def _check_dropped(process, state, name):
  """Clients without data or with NaN are counted and change nothing."""
  good, dropped = _data(process, [0, 2]), _dropped(process)
  alone = process.next(state, good)
  together = process.next(state, [good[0], *dropped, good[1]])
  counts = together.metrics['client_work']
  assert counts['num_empty_clients'] == counts['num_rejected_clients'] == 1
  assert counts['num_clients'] == 4
  for value in tf.nest.flatten(together.state):
    assert np.isfinite(value).all()
  if name not in _RATE_DROPPED:
    linear_task.assert_equal(together.state, alone.state)
    if name not in _RENEW_ROWS:
      rows = [_rows(s, [_BROKEN, _EMPTY]) for s in (state, together.state)]
      linear_task.assert_equal(*rows)
  for clients in ([], dropped):
    after = process.next(state, clients).state
    linear_task.assert_equal(
      process.get_model_weights(after), process.get_model_weights(state)
    )
    if name not in _RENEW_ROWS:
      ids = range(len(SIZES))
      linear_task.assert_equal(_rows(after, ids), _rows(state, ids))


def _check_bounded(process, name):
  """A client with huge features is clipped, and moves the model no further."""
  state = process.initialize()
  hidden = len(process.get_model_weights(state).trainable) > 2
  huge = _client(
    _BROKEN,
    _form(process),
    scale=_HUGE_BEHIND_HIDDEN if hidden else _HUGE,
  )
  alone = process.next(state, [huge])
  moved = _moved(process, state, alone.state)
  assert moved == pytest.approx(_MOVED.get(name, _BOUND), rel=1e-5)
  if name in _REMEMBER:
    part, norm = _REMEMBER[name]
    before, after = (_rows(s, [_BROKEN])[part] for s in (state, alone.state))
    change = tf.nest.map_structure(np.subtract, after, before)
    assert np.linalg.norm(linear_task.vector(change)) == pytest.approx(norm)
  honest = _data(process, [0, 2])
  for number in (1, 2):
    before, output = state, process.next(state, [honest[0], huge, honest[1]])
    state = output.state
    others = process.next(before, honest).state  # Without it.
    limit = _BOUND + _moved(process, before, others)
    assert _moved(process, before, state) <= limit * (1 + 1e-5)
    clipped = linear_task.reports(output)['clipped']
    assert output.metrics['client_work']['num_clipped_clients'] == sum(clipped)
    assert not clipped[0] and not clipped[2]
    if number == 1:  # Then the model may fit its data.
      assert clipped[1] == (name not in _SEND_LITTLE)
  for value in tf.nest.flatten(state):
    assert np.isfinite(value).all()
  if name not in _SHARED_ROWS:
    # Those of the last round; at first FedABoost's server shares out weights.
    linear_task.assert_close(_rows(state, [0, 2]), _rows(others, [0, 2]))
    linear_task.assert_equal(_rows(state, [_EMPTY]), _rows(before, [_EMPTY]))


def _moved(process, before, after):
  """The distance of the global models of two states."""
  one, other = (
    linear_task.vector(process.get_model_weights(s)) for s in (before, after)
  )
  return np.linalg.norm(other - one)


def _check_keras(process, state):
  """The weights of the state are those of plain Keras models."""
  models_of = {(): process.get_model_weights(state)}
  if isinstance(process, algorithms.PersonalizedLearningProcess):
    models_of[(2,)] = process.get_client_model_weights(state, 2)
    for client_id in (-1, len(SIZES)):
      with pytest.raises(ValueError, match='client_id must be'):
        process.to_keras(state, client_id)
  for client, weights in models_of.items():
    model = process.to_keras(state, *client)
    for name in ('trainable', 'non_trainable'):
      found = [v.numpy() for v in getattr(model, f'{name}_variables')]
      linear_task.assert_equal(found, list(getattr(weights, name)))


def _rows(state, ids):
  """These clients' rows of the client table."""
  return tf.nest.map_structure(
    lambda rows: rows[list(ids)], state.client_work['table']
  )


@functools.cache
def _client(client_id, form, kind=None, scale=None):
  data = linear_task.make_clients(SIZES)[client_id]
  if kind == 'broken':
    data.x[0, 0] = np.nan
  if kind == 'empty':
    data.x, data.y = data.x[:0], data.y[:0]
  if scale is not None:
    # In one step an epoch.
    data.x = scale * data.x[:1] * np.float32([[1], [2]])
    data.y = np.array([1, 0])
  if form == 'images':
    data = linear_task.as_images(data)
  if form == 'groups':
    data = linear_task.of_two_groups(data)
  return linear_task.client_data(client_id, data)


def _form(process):
  """Names the form of the clients' data."""
  element = process.next.type_signature.parameter[1].member['train'].element
  if len(element['x'].shape) == 4:
    return 'images'
  return 'groups' if len(element) == 3 else ''


def _data(process, cohort):
  form = _form(process)
  return [_client(i, form) for i in cohort]


def _dropped(process):
  form = _form(process)
  return [_client(_BROKEN, form, 'broken'), _client(_EMPTY, form, 'empty')]
