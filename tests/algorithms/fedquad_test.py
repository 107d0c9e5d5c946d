import functools

import numpy as np
import pytest

from tests.algorithms import corefed_reference
from tests.algorithms import fedquad_reference
from tests.algorithms import linear_task
from tests.algorithms import quadruplet_task
from tff_fair import algorithms

_DEFAULTS = {'learning_rate': 0.05, 'local_epochs': 3}

# Of several classes, of two, of one, all alone in their class, and with some
# alone; of two classes and of three where only one quadruplet can be drawn.
_LABELS = {
  'several': [0, 1, 2, 1, 0, 2, 2, 0, 1, 0, 2, 1],
  'two': [0, 2, 2, 0, 0],
  'one': [1, 1, 1],
  'alone': [2, 0, 1],
  'mixed': [0, 0, 2, 0, 1, 2, 2],
  'forced_two': [2, 0, 2],
  'forced_three': [1, 2, 1, 0],
  'empty': [],
  'broken': [0, 0, 1, 2],
}
_IDS = {name: i for i, name in enumerate(_LABELS)}


def _clients(*names):
  clients = {}
  for name in names:
    i = _IDS[name]
    clients[i] = linear_task.labelled_client(_LABELS[name], seed=i)
    if name == 'forced_three':
      # Both negatives of class 1 look alike, so it does not matter which is n1.
      clients[i].x[3] = clients[i].x[1]
    if name == 'broken':
      clients[i].x[1, 2] = np.nan
  return clients


def _build(build=algorithms.build_fedquad, **options):
  """The builder, with options named as the reference's."""
  options = {**_DEFAULTS, **options}
  learning_rate = options.pop('learning_rate')
  if 'weight' in options:
    options['quadruplet_weight'] = options.pop('weight')
  options = {
    'num_clients': len(_LABELS),
    'client_optimizer': linear_task.sgd(learning_rate),
    'batch_size': 50,
    **options,
  }
  return build(linear_task.embedding_model_fn, **options)


_process = functools.cache(_build)


def _reference(method='fedquad', **options):
  return fedquad_reference.Federation(
    linear_task.embedding_model_fn().get_weights(),
    method,
    **{**_DEFAULTS, **options},
  )


class TestReference:
  """The reference itself, on numbers worked by hand."""

  def test_worked_example(self):
    z_a, z_p, z_n1, z_n2 = np.array([[1.0, 0], [1, 2], [2, 2], [0, 0]])
    for squared, expected in ((False, 2.263932), (True, 3.5)):
      hinges = [
        fedquad_reference.distance(z_a, z_p, squared)
        - fedquad_reference.distance(z_a, z_n, squared)
        + margin
        for z_n, margin in ((z_n1, 1.0), (z_n2, 0.5))
      ]
      assert sum(hinges) == pytest.approx(expected, abs=1e-6)

  def test_hinges_by_hand(self):
    # Of anchors 0 and 1 alone: each other's positive, then 2, then 3.
    z = np.array([[0.0], [1], [3], [-1]])
    y = np.array([0, 0, 1, 2])
    assert fedquad_reference.shares(y) == (0.5, 0.5)
    # [1 - 3 + 1] + [1 - 1 + .5], and [1 - 2 + 1] + [1 - 2 + .5].
    for method, expected in (
      ('fedquad', 0.5),
      ('triplet_fl', 0.0),
      # [1 - 9 + 1] + [1 - 16 + .5], and [1 - 4 + 1] + [1 - 16 + .5].
      ('quadruplet_fl', 0.0),
    ):
      options = fedquad_reference.Options(method)
      loss, _ = fedquad_reference.hinge_loss(z, y, options)
      assert loss == pytest.approx(expected / 4)
    # Margins that make all of them positive: anchors 0 and 1, both hinges.
    options = fedquad_reference.Options('quadruplet_fl', margins=(10.0, 20.0))
    loss, _ = fedquad_reference.hinge_loss(z, y, options)
    assert loss == pytest.approx(((2 + 5) + (7 + 5)) / 4)

  def test_supervised_contrastive_loss_by_hand(self):
    z = np.array([[1, 0], [0.8, 0.6], [0, 1], [-0.6, 0.8]])
    loss = functools.partial(
      fedquad_reference.supervised_contrastive_loss, temperature=0.5
    )
    y = np.array([0, 0, 1, 1])
    # Lengths do not matter.
    z *= [[1], [2], [3], [4]]
    assert loss(z, y)[0] == pytest.approx(0.430190, abs=1e-6)
    assert loss(z[:3], y[:3])[0] == pytest.approx(0.348458, abs=1e-6)
    assert loss(z[1:3], y[1:3])[0] == 0

  def test_model_contrastive_loss_by_hand(self):
    z, received, previous = np.array([[1.0, 0], [0.9, 0.19**0.5], [1, 3**0.5]])
    loss, _ = fedquad_reference.model_contrastive_loss(
      [z], [received], [previous], 0.5
    )
    # ln(1 + exp((.5 - .9) / .5))
    assert loss == pytest.approx(0.371101, abs=1e-6)

  @pytest.mark.parametrize(
    'options',
    [
      {'method': 'fedquad'},
      {'method': 'fedquad', 'squared': True, 'use_ce': False},
      {'method': 'triplet_fl', 'margins': (2.0, 0.0)},
      {'method': 'quadruplet_fl'},
      {'method': 'supcon_fl'},
      {'method': 'supcon_fl', 'temperature': 0.07, 'use_ce': False},
      {'method': 'moon', 'weight': 5.0},
      {'method': 'fed_prox'},
    ],
    ids=str,
  )
  def test_gradient_by_differences(self, options):
    options = fedquad_reference.Options(**options)
    (data,) = _clients('mixed').values()
    weights, received, previous = np.random.default_rng(5).normal(
      size=[3, *corefed_reference.flatten(_reference().weights).shape]
    )
    like = _reference().weights

    def loss_and_slope(vector):
      metrics, slope = fedquad_reference.local_loss(
        corefed_reference.unflatten(vector, like),
        data,
        options,
        corefed_reference.unflatten(received, like),
        corefed_reference.unflatten(previous, like),
      )
      return metrics['loss'], corefed_reference.flatten(slope)

    expected = [
      (loss_and_slope(weights + step)[0] - loss_and_slope(weights - step)[0])
      / 2e-6
      for step in 1e-6 * np.eye(len(weights))
    ]
    np.testing.assert_allclose(
      loss_and_slope(weights)[1], expected, rtol=1e-5, atol=1e-6
    )


@pytest.mark.usefixtures('default_runtime')
class TestRoundsAgainstNumpy:
  @pytest.mark.parametrize(
    'options',
    [
      {},
      {'squared': True, 'margins': (0.5, 2.0), 'learning_rate': 0.01},
      {'use_ce': False, 'weight': 2.0},
    ],
    ids=str,
  )
  def test_of_given_quadruplets(self, options):
    with quadruplet_task.next_quadruplets():
      process = _build(**options)
    rounds = [
      _clients('several', 'two', 'mixed'),
      _clients('broken', 'one', 'empty', 'mixed', 'alone'),
    ]
    outputs = linear_task.assert_rounds(process, _reference(**options), rounds)
    found = [output.metrics['client_work'] for output in outputs]
    # 12 + 5 + 6 of 24 anchors, the last without the one that is alone.
    assert found[0]['v1_share'] == pytest.approx(23 / 24)
    assert found[0]['v2_share'] == pytest.approx(18 / 24)
    assert found[1]['num_rejected_clients'] == 1
    assert found[1]['num_empty_clients'] == 1
    assert found[1]['num_examples'] == 13

  def test_where_only_one_quadruplet_can_be_drawn(self):
    clients = _clients('forced_two', 'forced_three', 'one', 'alone')
    linear_task.assert_rounds(_process(), _reference(), [clients] * 2)

  def test_where_nothing_can_be_drawn_is_federated_averaging(self):
    linear_task.assert_rounds(
      _process(), _reference(weight=0.0), [_clients('one', 'alone')] * 2
    )


@pytest.mark.usefixtures('default_runtime')
def test_ids_do_not_change_the_training():
  clients = _clients('forced_two', 'forced_three', 'one')
  (with_ids,) = linear_task.assert_rounds(_process(), _reference(), [clients])
  without = _build(num_clients=None)
  data = [linear_task.client_data(0, c)['train'] for c in clients.values()]
  output = without.next(without.initialize(), data)
  for a, b in zip(
    without.get_model_weights(output.state).trainable,
    _process().get_model_weights(with_ids.state).trainable,
    strict=True,
  ):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
  found, expected = (
    output.metrics['client_work'],
    with_ids.metrics['client_work'],
  )
  assert set(found) == set(expected) - {'clients'}
  for name in found:
    assert found[name] == pytest.approx(expected[name], rel=1e-5), name


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize('optimizer', ['sgd', 'adam'])
def test_weight_0_is_fed_avg_bit_for_bit(optimizer):
  linear_task.assert_is_fed_avg(
    algorithms.build_fedquad, optimizer, quadruplet_weight=0
  )


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize('optimizer', ['sgd', 'adam'])
def test_without_cross_entropy_the_classifier_stays_as_it_was(optimizer):
  quadruplet_task.assert_trains_the_encoder_alone(
    algorithms.build_fedquad, optimizer
  )


@pytest.mark.usefixtures('default_runtime')
def test_each_role_has_its_own_batch_statistics():
  with quadruplet_task.next_quadruplets():
    process = algorithms.build_fedquad(
      linear_task.embedding_behind_batch_norm_model_fn,
      num_clients=1,
      client_optimizer=linear_task.sgd(0.0),
      local_epochs=1,
    )
  data = linear_task.labelled_client([0, 0, 0, 0, 1, 1, 2, 2])
  output = linear_task.run(process, [data], [[0]])
  roles = np.transpose(
    [
      (anchor, *fedquad_reference.next_quadruplet(data.y, anchor))
      for anchor in range(len(data.y))
    ]
  )
  mean, variance, embeddings = 0.0, 1.0, []
  for x in data.x[roles].astype(np.float64):
    mean, variance = (mean + x.mean(axis=0)) / 2, (variance + x.var(axis=0)) / 2
    normalized = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-3)
    embeddings.append(
      fedquad_reference.embeddings(_reference().weights, normalized)
    )
  statistics = process.get_model_weights(output.state).non_trainable
  for found, expected in zip(statistics, (mean, variance), strict=True):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
  anchor, *others = embeddings
  near, *far = [np.linalg.norm(anchor - other, axis=1) for other in others]
  q = [
    np.maximum(near - to_negative + margin, 0)
    for to_negative, margin in zip(far, (1.0, 0.5), strict=True)
  ]
  np.testing.assert_allclose(
    output.metrics['client_work']['quadruplet_loss'],
    np.mean(np.sum(q, axis=0)),
    rtol=1e-5,
  )


@functools.cache
def _quadruplet_losses(**options):
  """Of the first two rounds of a model that stays as it is."""
  process = _build(learning_rate=0.0, batch_size=5, **options)
  data = linear_task.client_data(0, *_clients('several').values())
  state, found = process.initialize(), []
  for _ in range(2):
    output = process.next(state, [data])
    state = output.state
    found.append(output.metrics['client_work']['quadruplet_loss'])
  return found


@pytest.mark.usefixtures('default_runtime')
class TestResampling:
  def test_once_is_once_a_round(self):
    of_one_epoch = _quadruplet_losses(resample='once', local_epochs=1)
    of_three = _quadruplet_losses(resample='once')
    np.testing.assert_allclose(of_one_epoch, of_three, rtol=1e-5)
    assert abs(of_three[0] - of_three[1]) > 1e-3

  def test_by_default_each_epoch_has_its_own_quadruplets(self):
    of_one_epoch = _quadruplet_losses(local_epochs=1)
    difference = np.subtract(of_one_epoch, _quadruplet_losses())
    assert np.abs(difference).min() > 1e-3

  def test_follows_the_seed(self):
    difference = np.subtract(
      _quadruplet_losses(local_epochs=1),
      _quadruplet_losses(local_epochs=1, seed=1),
    )
    assert np.abs(difference).min() > 1e-3


@pytest.mark.usefixtures('default_runtime')
def test_metrics_are_means_over_anchors_for_any_minibatches():
  with quadruplet_task.next_quadruplets():
    process = _build(learning_rate=0.0, batch_size=5)
  rounds = [_clients('several', 'mixed')] * 2
  linear_task.assert_rounds(process, _reference(learning_rate=0.0), rounds)


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    ({'margins': 1.0}, ValueError, 'margins must be two numbers, found 1.0'),
    (
      {'margins': (1.0,)},
      ValueError,
      r'margins must be two numbers, found \(1.0,\)',
    ),
    (
      {'margins': (1.0, 0.5, 0.2)},
      ValueError,
      'margins must be two numbers, found .*0.2',
    ),
    ({'margins': (1, -0.5)}, ValueError, 'margins must be .*found -0.5'),
    ({'margins': (np.nan, 0.5)}, ValueError, 'margins must be .*found nan'),
    ({'margins': (1.0, np.inf)}, ValueError, 'margins must be .*found inf'),
    ({'margins': 'no'}, TypeError, "margins must be .*found 'n"),
    ({'margins': ('1', 1)}, TypeError, "margins must be .*found '1'"),
    (
      {'weight': -0.1},
      ValueError,
      'quadruplet_weight must be at least 0.*found -0.1',
    ),
    ({'weight': np.nan}, ValueError, 'quadruplet_weight must be .*found nan'),
    ({'weight': None}, TypeError, 'quadruplet_weight must be .*found None'),
    (
      {'use_ce': False, 'weight': 0},
      ValueError,
      'quadruplet_weight must be positive with use_ce=False.*found 0',
    ),
    ({'use_ce': 'no'}, ValueError, "use_ce must be .*found 'no'"),
    ({'squared': None}, ValueError, 'squared must be .*found None'),
    (
      {'resample': 'never'},
      ValueError,
      "resample must be one of .*epoch.*once.*found 'never'",
    ),
  ],
  ids=str,
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _build(**options)


def test_a_model_without_embedding_is_refused():
  with pytest.raises(
    ValueError, match="model_fn must .*'embedding'.*build_fedquad.* found"
  ):
    algorithms.build_fedquad(
      linear_task.model_fn, client_optimizer=linear_task.sgd(0.1)
    )
