"""Our factories compose with TFF's, except where the table says why not."""

import collections
import functools
import inspect

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.composition import compositions
from tests.composition import write_matrix
from tff_fair import aggregators
from tff_fair import runtime

pytestmark = pytest.mark.full

# Of the clients' updates, two are longer.
_CLIP_NORM = 2.0
# Longer than all updates except exploding ones.
_ZERO_NORM = 100.0
# Larger than all summands.
_SECURE_BOUND = 64.0
_PROXIMAL_STRENGTH = 0.5
# The shapes of a kernel and a bias.
_PAIR = ([2, 2], [2])
_SECURE_SUMS = compositions.Sums(
  value=tff.aggregators.SecureSumFactory(_SECURE_BOUND),
  weight=tff.aggregators.SecureSumFactory(_SECURE_BOUND, 0.0),
  count=tff.aggregators.SecureSumFactory(1, 0),
)


@pytest.fixture(scope='module', autouse=True)
def native():
  """TFF's own runtime; that of the device is set."""
  runtime.set_execution_context('device', device='cpu')
  yield runtime.create_execution_context('native')
  runtime.set_execution_context('device', device='cpu')  # Ends the worker.


def _rows(column):
  rows = compositions.composed(column)
  return pytest.mark.parametrize(
    'row', rows, ids=[row.factory.__name__ for row in rows]
  )


def _impossible(columns):
  return [
    (row, c) for row in compositions.ROWS for c in columns if c in row.reasons
  ]


def test_every_factory_has_a_row():
  exported = {name for name in aggregators.__all__ if name.endswith('Factory')}
  listed = [row.factory.__name__ for row in compositions.ROWS]
  assert sorted(listed) == sorted(exported)


def test_every_note_is_of_a_column_and_used():
  used = set()
  for row in compositions.ROWS:
    assert {*row.reasons, *row.remarks} <= set(compositions.COLUMNS)
    assert not {*row.reasons} & {*row.remarks}
    used |= {*row.reasons.values(), *row.remarks.values()}
  assert used == {*compositions.REASONS, *compositions.REMARKS}
  in_builders = [compositions.composed(c) for c in compositions.BUILDERS]
  assert in_builders == [in_builders[0]] * len(in_builders)


def test_the_page_shows_this_matrix():
  page = write_matrix.PAGE.read_text()
  # `python -m tests.composition.write_matrix` makes it so.
  assert '<!-- composition matrix -->' in page
  assert write_matrix.render(page) == page


# The rounds.


@functools.cache
def _update(number, client_id):
  """A pair of arrays, longer for later clients."""
  rng = np.random.default_rng([number, client_id])
  scale = np.float32(2.0**client_id / 2)
  return tuple(scale * np.float32(rng.normal(size=s)) for s in _PAIR)


def _rounds(row, change=lambda client_id, value: value):
  """Values and weights of two rounds."""
  rounds = []
  for number, cohort in enumerate(compositions.COHORTS):
    values = [row.value(_update(number, i)) for i in cohort]
    weights = [row.weight(i, v) for i, v in zip(cohort, values, strict=True)]
    changed = [change(i, v) for i, v in zip(cohort, values, strict=True)]
    rounds.append((changed, weights))
  return rounds


def _norm(value):
  return np.sqrt(sum(np.sum(np.square(v)) for v in tf.nest.flatten(value)))


def _scaled(value, factor):
  return tf.nest.map_structure(lambda v: np.float32(factor) * v, value)


def _clipped(_, value):
  return _scaled(value, min(1.0, _CLIP_NORM / _norm(value)))


def _exploding(client_id, value):
  return _scaled(value, 1e4 if client_id == 2 else 1)


def _zeroed(client_id, value):
  return _scaled(value, 0 if client_id == 2 else 1)


def _type_of(value):
  return tff.to_type(
    tf.nest.map_structure(lambda v: tff.TensorType(v.dtype, v.shape), value)
  )


def _create(row, factory):
  (values, weights), _ = _rounds(row)
  return factory.create(_type_of(values[0]), _type_of(weights[0]))


@functools.cache
def _ours(row):
  """The factory alone, which creates each process once: that takes longest."""
  factory = row.build(compositions.Sums())
  factory.create = functools.cache(factory.create)
  return factory


def _run(process, rounds):
  """The result and the measurements of each round."""
  state, outputs = process.initialize(), []
  for values, weights in rounds:
    output = process.next(state, values, weights)
    state = output.state
    outputs.append((output.result, output.measurements))
  return outputs


@functools.cache
def _plain(row, change=lambda client_id, value: value):
  """The outputs of the factory alone."""
  return _run(_create(row, _ours(row)), _rounds(row, change))


def _outputs(row, process, native, rounds=None):
  """The outputs of a process, finite, and for some rows equal on `native`."""
  outputs = _same_on(row, native, _run, process, rounds or _rounds(row))
  for tensor in tf.nest.flatten(_results(outputs)):
    assert np.isfinite(tensor).all()
  return outputs


def _same_on(row, native, function, *arguments):
  on_device = function(*arguments)
  if row.factory in compositions.ON_NATIVE:
    with tff.framework.get_context_stack().install(native):
      _assert_close(on_device, function(*arguments))
  return on_device


def _assert_close(found, expected, rtol=1e-4, atol=1e-5):
  tf.nest.assert_same_structure(found, expected)
  linear_task.assert_close(found, expected, rtol, atol)


def _is_close(found, expected):
  try:
    _assert_close(found, expected)
  except AssertionError:
    return False
  return True


def _results(outputs):
  """Without measurements."""
  return [result for result, _ in outputs]


# Around ours.


@_rows('clip')
def test_updates_are_clipped_before(row, native):
  factory = tff.aggregators.clipping_factory(_CLIP_NORM, _ours(row))
  outputs = _outputs(row, _create(row, factory), native)
  assert [m['clipped_count'] for _, m in outputs] == [2, 1]
  found = [(result, m['clipping']) for result, m in outputs]
  _assert_close(found, _plain(row, _clipped))
  only_directions = 'clip' in row.remarks
  assert _is_close(found, _plain(row)) == only_directions


@_rows('zero')
def test_what_explodes_is_zeroed_before(row, native):
  factory = tff.aggregators.zeroing_factory(_ZERO_NORM, _ours(row))
  rounds = _rounds(row, _exploding)
  outputs = _outputs(row, _create(row, factory), native, rounds)
  assert [m['zeroed_count'] for _, m in outputs] == [1, 1]
  found = [(result, m['zeroing']) for result, m in outputs]
  _assert_close(found, _plain(row, _zeroed))


@_rows('measure')
def test_measurements_are_added(row, native):
  norm_of = tff.tensorflow.computation(
    lambda value: tf.linalg.global_norm(tf.nest.flatten(value))
  )
  factory = tff.aggregators.add_measurements(
    _ours(row),
    client_measurement_fn=lambda value, weight: collections.OrderedDict(
      sum_of_norms=tff.federated_sum(tff.federated_map(norm_of, value))
    ),
    server_measurement_fn=lambda result: collections.OrderedDict(
      norm_of_result=tff.federated_map(norm_of, result)
    ),
  )
  rounds = _rounds(row)
  found = _outputs(row, _create(row, factory), native, rounds)
  for (result, measured), (plain, expected), (values, _) in zip(
    found, _plain(row), rounds, strict=True
  ):
    _assert_close(result, plain)
    _assert_close(
      measured,
      collections.OrderedDict(
        expected,
        sum_of_norms=sum(_norm(v) for v in values),
        norm_of_result=_norm(result),
      ),
    )


# Inside ours.


@_rows('DP')
def test_a_private_sum_without_noise_is_one_of_clipped_values(row, native):
  private = tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
    noise_multiplier=0.0, clients_per_round=1.0, clip=_CLIP_NORM
  )
  process = _create(row, row.build(compositions.Sums(value=private)))
  found = _results(_outputs(row, process, native))
  clipped = tff.aggregators.clipping_factory(
    _CLIP_NORM, tff.aggregators.SumFactory()
  )
  process = _create(row, row.build(compositions.Sums(value=clipped)))
  _assert_close(found, _results(_run(process, _rounds(row))))
  assert not _is_close(found, _results(_plain(row)))


def _aggregations(process):
  """Whether each of what clients send is summed securely, and its tensors."""
  found = []

  def look(block):
    match block:
      case tff.framework.Intrinsic(
        type_signature=tff.FunctionType(
          result=tff.FederatedType(placement=tff.SERVER)
        )
      ):
        argument = block.type_signature.parameter
        if isinstance(argument, tff.StructType) and len(argument):
          argument = argument[0]  # The others define the aggregation.
        if isinstance(argument, tff.FederatedType) and (
          argument.placement is tff.CLIENTS
        ):
          tensors = []
          tff.types.structure_from_tensor_type_tree(
            tensors.append, argument.member
          )
          found.append((block.uri.startswith('federated_secure'), tensors))
    return block, False

  tff.framework.transform_postorder(process.next.to_building_block(), look)
  return found


@_rows('secure')
def test_updates_are_summed_securely(row, native):
  process = _create(row, row.build(_SECURE_SUMS))
  found = _results(_outputs(row, process, native))
  _assert_close(found, _results(_plain(row)))
  aggregations = _aggregations(process)
  assert any(is_secure for is_secure, _ in aggregations)
  sent = [t for secure, tensors in aggregations if not secure for t in tensors]
  remark = row.remarks.get('secure')
  # Counts of two groups are no updates, which have other shapes.
  counts = {(), (2,)} if remark == compositions.GROUPS else {()}
  assert {tuple(tensor.shape) for tensor in sent} <= counts
  counts_clients = 'secure' in row.remarks
  assert bool(sent) == counts_clients


@_rows('compress')
def test_a_compressed_sum_is_off_by_its_quantization(row, native):
  compressed = tff.aggregators.EncodedSumFactory.quantize_above_threshold(
    quantization_bits=8, threshold=1, stochastic=False
  )
  process = _create(row, row.build(compositions.Sums(value=compressed)))
  found = _results(_outputs(row, process, native))
  exact = _results(_plain(row))
  assert not _is_close(found, exact)
  _assert_close(found, exact, rtol=0.0, atol=0.1)


def test_rules_that_compare_updates_have_no_sum_inside():
  for row, column in _impossible(compositions.SUMS):
    assert row.reasons[column] == compositions.SINGLE
    parameters = inspect.signature(row.factory).parameters
    assert not [name for name in parameters if name.endswith('_factory')]


# In an algorithm.


_SGD = tff.learning.optimizers.build_sgdm(0.1)


@functools.cache
def _examples(client_id):
  """Two batches, or more for later clients."""
  rng = np.random.default_rng([7, client_id])
  shape = [client_id + 2, 2, 2]
  return tuple(rng.normal(size=shape).astype(np.float32) for _ in range(2))


def _model():
  """Linear regression."""

  @tf.function
  def predict(weights, x, training):
    del training  # Unused.
    (kernel, bias), _ = weights
    return tf.matmul(x, kernel) + bias

  batch = tf.TensorSpec([None, 2], tf.float32)
  return tff.learning.models.FunctionalModel(
    initial_weights=(compositions.INITIAL, ()),
    predict_on_batch_fn=predict,
    loss_fn=lambda output, label, sample_weight=None: tf.reduce_mean(
      tf.square(output - label)
    ),
    input_spec=(batch, batch),
  )


def _build(builder, rule):
  arguments = {
    'FedAvg': {'client_optimizer_fn': _SGD},
    'FedProx': {
      'client_optimizer_fn': _SGD,
      'proximal_strength': _PROXIMAL_STRENGTH,
    },
    'MimeLite': {'base_optimizer': _SGD},
  }[builder]
  build = getattr(tff.learning.algorithms, compositions.BUILDERS[builder])
  return build(_model(), model_aggregator=rule, **arguments)


def _local_update(weights, client_id, proximal_strength):
  """A client's update: old weights minus new, after an SGD step per batch."""
  kernel, bias = weights
  for x, y in zip(*_examples(client_id), strict=True):
    error = 2 * (x @ kernel + bias - y) / y.size
    pull = [
      proximal_strength * (new - old)
      for new, old in zip((kernel, bias), weights, strict=True)
    ]
    kernel = kernel - np.float32(0.1) * (x.T @ error + pull[0])
    bias = bias - np.float32(0.1) * (error.sum(axis=0) + pull[1])
  return weights[0] - kernel, weights[1] - bias


def _expected_model(row, proximal_strength):
  """The model after two rounds of local SGD with the rule alone."""
  rule = _create(row, _ours(row))
  state, weights = rule.initialize(), compositions.INITIAL
  for cohort in compositions.COHORTS:
    updates = [_local_update(weights, i, proximal_strength) for i in cohort]
    numbers = [np.float32(_examples(i)[0].size / 2) for i in cohort]
    output = rule.next(state, updates, numbers)
    state = output.state
    weights = tuple(w - u for w, u in zip(weights, output.result, strict=True))
  return weights


def _train(process):
  """The model after two rounds, and the metrics of the rule."""
  state, measured = process.initialize(), []
  for cohort in compositions.COHORTS:
    data = [tf.data.Dataset.from_tensor_slices(_examples(i)) for i in cohort]
    output = process.next(state, data)
    state = output.state
    measured.append(output.metrics['aggregator'])
  return process.get_model_weights(state).trainable, measured


# All of them take the same rows.
@_rows('FedAvg')
def test_rules_in_builders(row, native):
  for builder in compositions.BUILDERS:
    process = _build(builder, _ours(row))
    model, _ = _same_on(row, native, _train, process)
    # TFF 0.87.0 subtracts the gradient of the proximal term; it should add it.
    strength = -_PROXIMAL_STRENGTH if builder == 'FedProx' else 0.0
    _assert_close(tuple(model), _expected_model(row, strength))


def test_clients_of_builders_do_not_send_what_other_rules_take():
  for row, column in _impossible(compositions.BUILDERS):
    rule = row.build(compositions.Sums())
    message = 'requires (the|a) weight'
    if row.reasons[column] == compositions.STATISTICS:
      message = 'requires values that are tff.learning.models.ModelWeights'
    with pytest.raises(TypeError, match=message):
      _build(column, rule)
