import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import corefed_reference
from tests.algorithms import linear_task
from tff_fair import aggregators
from tff_fair import client
from tff_fair import models

_VALUE = tff.TensorType(np.float32, [2])
_EMBEDDINGS = ((1.0, 0.0), (0.6, 0.8), (0.0, 1.0), (0.0, 1.0))
_ZERO = (0.0, 0.0)


def _weight_type(size=2):
  return tff.types.to_type(
    collections.OrderedDict(
      client_id=np.int32, embedding=tff.TensorType(np.float32, [size])
    )
  )


def _weight(client_id, embedding=None):
  if embedding is None:
    embedding = _EMBEDDINGS[client_id]
  return collections.OrderedDict(
    client_id=np.int32(client_id), embedding=np.float32(embedding)
  )


def _process(num_clients=4, value_type=_VALUE, size=2, **options):
  return aggregators.GradientReuseFactory(num_clients, **options).create(
    value_type, _weight_type(size)
  )


def _run(process, cohorts, values=None):
  """The last of some rounds in which client i sends `values[i]`, or zeros."""
  state = process.initialize()
  for cohort in cohorts:
    sent = [np.float32(values[i] if values else _ZERO) for i in cohort]
    output = process.next(state, sent, [_weight(i) for i in cohort])
    state = output.state
  return output


def _assert_clients(output, **expected):
  for name, values in expected.items():
    np.testing.assert_allclose(
      output.measurements['clients'][name], values, atol=1e-6, err_msg=name
    )


def _assert_report(output, report):
  """The measurements are those of the reference."""
  found = output.measurements
  assert found['window'] == report['tau']
  assert found['num_stale'] == report['num_stale']
  np.testing.assert_allclose(
    found['contrastive_loss'], report['contrastive_loss'], rtol=1e-5
  )
  _assert_clients(output, **{name: report[name] for name in found['clients']})


@pytest.mark.usefixtures('default_runtime')
class TestWorkedExamples:
  def test_fresh_clients(self):
    process = _process(temperature=0.5, gradient_reuse=False)
    # 4 distinct ones and 2 present: a window of 2, with client 0 in both.
    output = _run(process, [[0, 2, 3], [1, 0]])
    assert output.measurements['window'] == 2
    assert output.measurements['num_stale'] == 0
    # z_g = (.8, .4): -(.894427 - .6) / .5 for either.
    np.testing.assert_allclose(
      output.measurements['contrastive_loss'], -0.588854, atol=1e-6
    )
    _assert_clients(
      output,
      client_id=[0, 1],
      frequency=[1, 0.5],
      # cos((.857771, .178885), z_g), and by symmetry.
      alignment=[0.966890, 0.966890],
      weight=[0.414214, 0.585786],
      stale=[0, 0],
    )

  def test_a_stale_client(self):
    process = _process(learning_rate_fn=lambda round_number: 0.1)
    # From (0, 0) to (1, 0), then from there to (1, 1).
    values = [(-1.0, 0.0), (0.0, -1.0)]
    first = _run(process, [[0]], values)
    np.testing.assert_allclose(first.result, [-1.0, 0.0], rtol=1e-6)
    second = _run(process, [[0], [1]], values)
    assert second.measurements['window'] == 2
    assert second.measurements['num_stale'] == 1
    assert second.measurements['contrastive_loss'] == 0
    _assert_clients(
      second,
      client_id=[0, 1],
      frequency=[0.5, 0.5],
      alignment=[0.832050, 1],
      weight=[0.488380, 0.511620],
      stale=[1, 0],
    )
    np.testing.assert_allclose(
      np.array([1, 0]) - second.result, [1.488380, 0.511620], atol=1e-6
    )


@pytest.mark.usefixtures('default_runtime')
class TestReuse:
  def test_at_the_very_end_of_the_window(self):
    # 4 distinct ones and 2 present: tau = 2. In round 3 client 0, last seen in
    # round 1, is in no round of the window, and counts as if in one.
    values = [(2.0, 0.0), (0.0, 2.0), (0.0, 0.0), (0.0, 0.0)]
    process = _process(fairness_exponent=1.0, sharpness=0.0)
    output = _run(process, [[0, 1], [2, 3], [2, 1]], values)
    assert output.measurements['window'] == 2
    _assert_clients(
      output,
      client_id=[0, 1, 2, 3],
      frequency=[0.5, 0.5, 1, 0.5],
      weight=np.array([2, 2, 1, 2]) / 7,
      stale=[1, 0, 0, 1],
    )
    np.testing.assert_allclose(output.result, [4 / 7, 4 / 7], rtol=1e-6)

  def test_after_the_window(self):
    process = _process(fairness_exponent=0.0, sharpness=0.0)
    output = _run(process, [[0, 1], [2, 3], [2, 3], [2, 1]])
    _assert_clients(output, client_id=[1, 2, 3], stale=[0, 0, 1])

  def test_stored_gradients_move_at_todays_rate(self):
    process = _process(
      fairness_exponent=0.0,
      sharpness=0.0,
      learning_rate_fn=lambda round_number: tf.gather([0.4, 0.1], round_number),
    )
    output = _run(process, [[0], [1]], [(8.0, 0.0), (0.0, 1.0)])
    # (8 / .4 * .1 + 0) / 2 and 1 / 2.
    np.testing.assert_allclose(output.result, [1.0, 0.5], rtol=1e-6)

  def test_a_rate_of_0_leaves_nothing_to_reuse(self):
    process = _process(
      fairness_exponent=0.0,
      sharpness=0.0,
      learning_rate_fn=lambda round_number: tf.gather([0.0, 0.1], round_number),
    )
    output = _run(process, [[0], [1]], [(0.0, 0.0), (0.0, 1.0)])
    _assert_clients(output, client_id=[0, 1], weight=[0.5, 0.5])
    np.testing.assert_allclose(output.result, [0.0, 0.5], rtol=1e-6)

  @pytest.mark.parametrize(
    'options',
    [
      {},
      {
        'fairness_exponent': 2.0,
        'sharpness': 0.5,
        'distillation_rate': 1.0,
        'temperature': 0.5,
      },
      {'include_positive': True, 'distillation_rate': 0.0},
      {'gradient_reuse': False},
    ],
    ids=str,
  )
  def test_many_rounds_against_numpy(self, options):
    """More rounds than clients, so that nothing old may be left anywhere."""
    process = _process(
      5,
      size=3,
      learning_rate_fn=lambda n: 0.5 * 0.9 ** tf.cast(n, tf.float32),
      **options,
    )
    server = corefed_reference.Server(
      np.zeros(2), corefed_reference.Options(**options)
    )
    state, windows = process.initialize(), set()
    for n, present in enumerate(self._random_rounds()):
      before = server.weights
      report = server.next(
        {i: (before - update, z) for i, update, z in present}, 0.5 * 0.9**n
      )
      output = process.next(
        state,
        [np.float32(update) for _, update, _ in present],
        [_weight(i, z) for i, _, z in present],
      )
      state = output.state
      np.testing.assert_allclose(
        output.result, before - server.weights, rtol=1e-5, atol=1e-6
      )
      lost = len(present) - len(server.cohorts[-1])
      assert output.measurements['num_not_taking_part'] == lost
      if report is not None:
        _assert_report(output, report)
        windows.add(report['tau'])
    assert windows == {1, 2, 4, 5}

  def _random_rounds(self):
    """Of five clients, `(id, update, embedding)` each; some are not finite."""
    rng = np.random.default_rng(0)
    for _ in range(20):
      ids = rng.permutation(5)[: rng.choice([1, 1, 2, 3])]
      updates, embeddings = rng.normal(size=[5, 2]), rng.normal(size=[5, 3])
      updates[rng.random(5) < 0.15] = np.nan
      yield [(i, updates[i], embeddings[i]) for i in ids]


@pytest.mark.usefixtures('default_runtime')
class TestWhoTakesPart:
  def _first(self):
    """The state after a round with clients 0 and 1."""
    process = _process()
    state = _run(process, [[0, 1]], [(1.0, 0.0), (0.0, 1.0)]).state
    return process, state

  @pytest.mark.parametrize(
    ('value', 'weight'),
    [
      ((np.nan, 0.0), _weight(2)),
      ((0.0, -np.inf), _weight(2)),
      ((5.0, 5.0), _weight(2, (np.nan, 0.0))),
      ((5.0, 5.0), _weight(2, (np.inf, 0.0))),
      ((5.0, 5.0), _weight(-1, (1.0, 1.0))),
    ],
    ids=['value_nan', 'value_inf', 'embedding_nan', 'embedding_inf', 'id'],
  )
  def test_one_who_does_not(self, value, weight):
    process, state = self._first()
    other = np.float32([3.0, 4.0])
    with_it = process.next(
      state, [other, np.float32(value)], [_weight(1), weight]
    )
    without = process.next(state, [other], [_weight(1)])
    assert with_it.measurements['num_not_taking_part'] == 1
    assert without.measurements['num_not_taking_part'] == 0
    del with_it.measurements['num_not_taking_part']
    del without.measurements['num_not_taking_part']
    tf.nest.map_structure(np.testing.assert_array_equal, with_it, without)

  @pytest.mark.parametrize(
    'present', [[-1, -1], []], ids=['rejected', 'nobody']
  )
  def test_nobody(self, present):
    process, state = self._first()
    output = process.next(
      state,
      [np.float32([1.0, 1.0]) for _ in present],
      [_weight(i, (1.0, 1.0)) for i in present],
    )
    np.testing.assert_array_equal(output.result, [0.0, 0.0])
    assert output.measurements['num_not_taking_part'] == len(present)
    assert output.measurements['num_stale'] == 0
    assert output.measurements['clients']['client_id'].shape == (0,)
    assert output.state['round'] == state['round'] + 1
    for name in ('updates', 'embeddings', 'last_round', 'learning_rate'):
      np.testing.assert_array_equal(output.state[name], state[name])
    # The round has passed: 2 distinct ones and 1 present.
    after = process.next(output.state, [np.float32(_ZERO)], [_weight(0)])
    _assert_clients(after, client_id=[0, 1], frequency=[0.5, 0.5])

  @pytest.mark.parametrize(
    ('ids', 'message'),
    [
      ([0, 4], r'ids must lie in 0\.\.3, found.*4'),
      ([-2, 1], r'ids must lie in 0\.\.3, found.*-2'),
      ([1, 2, 1], 'once a round, found the ids'),
    ],
    ids=str,
  )
  def test_bad_ids(self, ids, message):
    process = _process()
    with pytest.raises(RuntimeError, match=message):
      process.next(
        process.initialize(),
        [np.float32(_ZERO) for _ in ids],
        [_weight(i, (1.0, 0.0)) for i in ids],
      )


@pytest.mark.usefixtures('default_runtime')
class TestEmbeddings:
  def _clients(self, embeddings, **options):
    process = _process(len(embeddings), **options)
    output = process.next(
      process.initialize(),
      [np.float32(_ZERO) for _ in embeddings],
      [_weight(i, embedding) for i, embedding in enumerate(embeddings)],
    )
    return output.measurements['clients']

  def test_zero_agrees_with_nothing(self):
    found = self._clients([_ZERO, (1.0, 0.0)])
    np.testing.assert_allclose(found['alignment'], [0, 1], atol=1e-6)
    # sigma(0) = .5 and sigma(2) = .880797.
    weight = np.array([0.5, 0.880797]) / 1.380797
    np.testing.assert_allclose(found['weight'], weight, rtol=1e-6)

  def test_a_zero_mean_agrees_with_nothing(self):
    found = self._clients([(1.0, 0.0), (-1.0, 0.0)])
    np.testing.assert_array_equal(found['alignment'], [0, 0])
    np.testing.assert_array_equal(found['weight'], [0.5, 0.5])

  def test_orthogonal_and_wholly_refined_agrees_with_nothing(self):
    # z_g = (1, 0); r_2 = cos((0, 1), z_g) z_g = 0.
    embeddings = [(1.5, -0.5), (1.5, -0.5), (0.0, 1.0)]
    found = self._clients(embeddings, distillation_rate=1.0)
    np.testing.assert_allclose(found['alignment'], [1, 1, 0], atol=1e-6)

  def test_opposite_is_worth_less(self):
    # z_g = (1 / 3, 0): r = (-1, 0) + .5 * ((-1 / 3, 0) - (-1, 0)) = -2 / 3.
    found = self._clients([(1.0, 0.0), (1.0, 0.0), (-1.0, 0.0)])
    np.testing.assert_allclose(found['alignment'], [1, 1, -1], atol=1e-6)
    shares = 1 / (1 + np.exp([-2, -2, 2]))
    np.testing.assert_allclose(found['weight'], shares / shares.sum(), 1e-6)


_STRUCTURE = tff.types.to_type(
  collections.OrderedDict(
    # Not in the order of their names.
    kernel=tff.TensorType(np.float32, [2, 1]),
    bias=[np.float32, tff.TensorType(np.float32, [1])],
  )
)


@pytest.mark.usefixtures('default_runtime')
class TestTypes:
  def test_state_and_result(self):
    process = _process(5, _STRUCTURE, size=7)
    result = process.next.type_signature.result
    tff.test.assert_types_identical(result.result.member, _STRUCTURE)
    tff.test.assert_types_identical(
      result.state, process.initialize.type_signature.result
    )
    state = process.initialize()
    assert state['updates'].shape == (5, 4)
    assert state['embeddings'].shape == (5, 7)
    assert process.is_weighted

  def test_any_structure(self):
    process = _process(4, _STRUCTURE, fairness_exponent=0.0, sharpness=0.0)

    def value(x):
      return collections.OrderedDict(
        kernel=np.float32([[x], [10 * x]]),
        bias=[np.float32(-x), np.float32([3 * x])],
      )

    state = process.next(process.initialize(), [value(2)], [_weight(0)]).state
    output = process.next(state, [value(4)], [_weight(1)])
    tf.nest.map_structure(
      np.testing.assert_array_equal, output.result, value(3)
    )

  def test_statistics_are_averaged_over_the_fresh(self):
    weights = tff.learning.models.ModelWeights
    value_type = tff.types.to_type(
      weights([_VALUE], [tff.TensorType(np.float32, [1])])
    )
    process = _process(4, value_type)
    state = process.initialize()
    for ids in ([0, 3], [0, 1]):
      output = process.next(
        state,
        [weights([np.float32([i, 1])], [np.float32([10 * i])]) for i in ids],
        [_weight(i) for i in ids],
      )
      state = output.state
    _assert_clients(output, client_id=[0, 1, 3], stale=[0, 0, 1])
    share = output.measurements['clients']['weight']
    np.testing.assert_allclose(
      output.result.trainable[0], [share[1] + 3 * share[2], 1], rtol=1e-6
    )
    np.testing.assert_allclose(
      output.result.non_trainable[0], [10 * share[1] / (share[0] + share[1])]
    )
    assert state['updates'].shape == (4, 2)

  def test_within_factories_of_tff(self):
    inner = aggregators.GradientReuseFactory(4)
    factory = tff.aggregators.zeroing_factory(
      100.0, tff.aggregators.clipping_factory(1.0, inner)
    )
    process = factory.create(_VALUE, _weight_type())
    output = _run(process, [[0], [1]], [(30.0, 40.0), (300.0, 400.0)])
    # Clipped to length 1 and remembered so; the other is zeroed.
    share = 0.488380
    np.testing.assert_allclose(
      output.result, [0.6 * share, 0.8 * share], atol=1e-6
    )

  @pytest.mark.parametrize(
    'weight',
    [
      np.float32,
      collections.OrderedDict(client_id=np.int32),
      collections.OrderedDict(client_id=np.int32, embedding=np.float32),
      collections.OrderedDict(
        client_id=np.float32, embedding=tff.TensorType(np.float32, [2])
      ),
      collections.OrderedDict(
        client_id=np.int32, embedding=tff.TensorType(np.float32, [None])
      ),
    ],
  )
  def test_bad_weight_types(self, weight):
    factory = aggregators.GradientReuseFactory(4)
    with pytest.raises(TypeError, match='weight type <client_id.* Found type'):
      factory.create(_VALUE, tff.types.to_type(weight))

  @pytest.mark.parametrize(
    'value_type',
    [
      tff.TensorType(np.int32, [2]),
      tff.TensorType(np.float64, [2]),
      tff.types.to_type([np.float32, np.int32]),
      tff.TensorType(np.float32, [None]),
    ],
    ids=str,
  )
  def test_bad_value_types(self, value_type):
    factory = aggregators.GradientReuseFactory(4)
    with pytest.raises(TypeError, match='float32 tensors.* Found type'):
      factory.create(value_type, _weight_type())


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    ({'num_clients': 0}, ValueError, 'num_clients must be at least 1, found 0'),
    ({'num_clients': 2.0}, TypeError, 'num_clients must be an integer, found'),
    (
      {'fairness_exponent': -1},
      ValueError,
      'exponent must be at least 0.* found -1',
    ),
    (
      {'fairness_exponent': None},
      TypeError,
      'exponent must be a real number, found None',
    ),
    ({'sharpness': -1}, ValueError, 'sharpness must be at least 0.* found -1'),
    ({'distillation_rate': 2}, ValueError, 'rate must be .*found 2'),
    ({'distillation_rate': -1}, ValueError, 'rate must be .*found -1'),
    ({'temperature': 0.0}, ValueError, 'temperature must be positive, found 0'),
    ({'temperature': np.nan}, ValueError, 'temperature must be finite, found'),
  ],
  ids=str,
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    aggregators.GradientReuseFactory(**{'num_clients': 4, **options})


def _build_label_fair_process(model_fn, num_clients):
  """Federated averaging that favours rare clients with usual labels.

  The "embedding" may be anything that says what a client's data are like; here
  it is the histogram of the labels.
  """
  model = models.StatelessModel(model_fn)
  train = client.build_local_training(
    model,
    client.cross_entropy_objective(),
    tff.learning.optimizers.build_sgdm(0.1),
    local_epochs=1,
    batch_size=4,
  )

  def client_update(weights, row, examples, seed, learning_rate):
    del learning_rate  # The optimiser's own.
    trained = train(weights, examples['train'], seed).weights.trainable
    labels = tf.one_hot(examples['train']['y'], model.num_classes)

    def weight(client_id):
      return collections.OrderedDict(
        client_id=client_id, embedding=tf.reduce_sum(labels, axis=0)
      )

    return client.ClientOutput(
      update=tf.nest.map_structure(tf.subtract, weights.trainable, trained),
      update_weight=weight(examples['key']),
      dropped_weight=weight(-1),  # Takes no part.
      row=row,
      metrics=collections.OrderedDict(),
      report=collections.OrderedDict(),
    )

  client_work = client.build_client_work(
    model, client_update, num_clients=num_clients, seed=0
  )
  sent = client_work.next.type_signature.result.result.member
  return tff.learning.templates.compose_learning_process(
    tff.tensorflow.computation(lambda: model.initial_weights),
    tff.learning.templates.build_broadcast_process(model.weights_type),
    client_work,
    aggregators.GradientReuseFactory(num_clients).create(
      sent.update, sent.update_weight
    ),
    tff.learning.templates.build_apply_optimizer_finalizer(
      tff.learning.optimizers.build_sgdm(1.0), model.weights_type
    ),
  )


@pytest.mark.usefixtures('default_runtime')
def test_with_another_client_work():
  clients = linear_task.make_clients((8, 6, 7))
  clients[2].x[0, 0] = np.nan
  process = _build_label_fair_process(linear_task.model_fn, 3)
  state = process.initialize()
  for ids in ([0, 2], [1]):
    before = process.get_model_weights(state)
    data = [linear_task.client_data(i, clients[i]) for i in ids]
    output = process.next(state, data)
    state = output.state
  measured = output.metrics['aggregator']
  np.testing.assert_array_equal(measured['clients']['client_id'], [0, 1])
  np.testing.assert_array_equal(measured['clients']['stale'], [1, 0])
  histograms = [np.bincount(clients[i].y, minlength=3) for i in (0, 1)]
  np.testing.assert_array_equal(
    state.aggregator['embeddings'], [*histograms, np.zeros(3)]
  )
  # The step is a mean of the stale and the fresh update.
  share = measured['clients']['weight']
  step = share @ state.aggregator['updates'][:2]
  after = process.get_model_weights(state)
  for old, new, part in zip(
    before.trainable, after.trainable, np.split(step, [12]), strict=True
  ):
    np.testing.assert_allclose(old - new, part.reshape(old.shape), atol=1e-6)
