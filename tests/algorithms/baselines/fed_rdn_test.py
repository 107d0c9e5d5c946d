import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import image_task
from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair.algorithms.baselines import fed_rdn

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12)
_NAN = np.nan


def _statistics(mean, std):
  """Of clients with one channel."""
  return collections.OrderedDict(
    mean=np.array(mean, np.float32)[:, np.newaxis],
    std=np.array(std, np.float32)[:, np.newaxis],
  )


# Whatever is drawn, it is the second client's.
_ONE_KNOWN = _statistics([_NAN, 0.3, _NAN], [_NAN, 0.5, 1.0])


def _build(model_fn=image_task.model_fn, **options):
  options = {
    'num_clients': len(_SIZES),
    'client_optimizer': linear_task.sgd(0.1),
    'statistics': _ONE_KNOWN,
    'local_epochs': 2,
    'batch_size': 50,
    **options,
  }
  return algorithms.build_fed_rdn(model_fn, **options)


def _clients(sizes=_SIZES):
  return [image_task.as_images(c) for c in linear_task.make_clients(sizes)]


def _data(clients):
  return [linear_task.client_data(i, c) for i, c in enumerate(clients)]


class TestChannelStatistics:
  def test_by_hand(self):
    # Channel means (1, 4) and (5, 0), deviations (1, 0) and (3, 0).
    first = [[[0, 4], [2, 4]]]
    second = [[[2, 0], [8, 0]]]
    found = fed_rdn.channel_statistics(np.array([first, second], np.float32))
    np.testing.assert_allclose(found['mean'], [3, 2])
    np.testing.assert_allclose(found['std'], [2, 0])

  def test_gather_before_the_first_round(self):
    clients = _clients((5, 9, 0, 7, 4))
    clients[3].x[0, 1, 0, 0] = np.inf
    gather = algorithms.build_channel_statistics(
      image_task.model_fn, num_clients=6
    )
    # Client 1 is absent, 2 has no image, 3 one that is not finite.
    found = gather(
      [linear_task.client_data(i, clients[i]) for i in (4, 2, 3, 0)]
    )
    assert list(found) == ['mean', 'std']
    for name, per_image in (('mean', np.mean), ('std', np.std)):
      expected = np.full([6, 1], _NAN)
      for i in (0, 4):
        expected[i] = per_image(clients[i].x, axis=(1, 2)).mean(axis=0)
      np.testing.assert_allclose(found[name], expected, rtol=1e-5)
    _build(num_clients=6, statistics=found)

  def test_needs_images(self):
    with pytest.raises(
      ValueError, match=r'must build a model of images .* inputs of shape \[4\]'
    ):
      algorithms.build_channel_statistics(linear_task.model_fn, num_clients=3)


class TestNormalizeForClient:
  def _normalize(self, pixel, client_id, statistics):
    images = np.full([2, 3, 3, 1], pixel)
    found = algorithms.normalize_for_client(images, statistics, client_id)
    assert (found.shape, found.dtype) == (images.shape, np.float32)
    assert np.all(found == found[0, 0, 0])
    return found[0, 0, 0, 0]

  def test_own_statistics(self):
    statistics = _statistics([0.9, 0.2], [0.4, 0.1])
    assert self._normalize(0.5, 1, statistics) == pytest.approx(2.99997)

  @pytest.mark.parametrize('client_id', [0, None])
  def test_without_own_the_mean_over_clients(self, client_id):
    statistics = _statistics([_NAN, 0.2, 0.4], [_NAN, 0.1, 0.3])
    found = self._normalize(0.5, client_id, statistics)
    assert found == pytest.approx(0.2 / 0.2, abs=1e-5)

  def test_a_channel_of_one_colour_is_bounded(self):
    statistics = _statistics([0.5], [0.0])
    assert self._normalize(0.6, 0, statistics) == 1000
    assert self._normalize(0.4, 0, statistics) == -1000
    assert self._normalize(0.5, 0, statistics) == 0


def _normalized(clients):
  """The clients as they look with the only known statistics."""
  return [
    dataclasses.replace(
      c, x=algorithms.normalize_for_client(c.x, _ONE_KNOWN, 1)
    )
    for c in clients
  ]


def test_is_fed_avg_of_normalized_images():
  """With their distances, for which each client takes its own statistics."""
  process = _build(image_task.embedding_model_fn)
  fed_avg = algorithms.build_fed_avg(
    image_task.embedding_model_fn,
    num_clients=len(_SIZES),
    client_optimizer=linear_task.sgd(0.1),
    local_epochs=2,
    batch_size=50,
  )
  clients = _clients()
  results = []
  for p, data in (
    (process, _data(clients)),
    (fed_avg, _data(_normalized(clients))),
  ):
    state = p.initialize()
    output = p.next(state, data)
    results.append(
      (
        output.state.global_model_weights,
        output.metrics['client_work']['loss'],
        p.divergence(state, output.state, data),
      )
    )
  assert results[0][2]['embedding_d_manhattan'] > 0.01
  tf.nest.map_structure(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
    *results,
  )


def test_each_image_draws_at_each_step():
  """Equal images in one minibatch: the loss tells how many drew the second."""
  number, rounds = 16, 4
  (data,) = _clients((1,))
  x, y = np.repeat(data.x, number, axis=0), np.repeat(data.y, number)
  clients = [dataclasses.replace(data, x=x, y=y)]
  standing = linear_task.sgd(0.0)
  # The third row is that of a client without images: never drawn.
  pairs = _statistics([0.0, 3.0, _NAN], [1.0, 2.0, _NAN])

  def losses(statistics, seed=0):
    process = _build(
      statistics=statistics,
      client_optimizer=standing,
      local_epochs=1,
      seed=seed,
    )
    state, found = process.initialize(), []
    for _ in range(rounds):
      output = process.next(state, _data(clients))
      state = output.state
      found.append(output.metrics['client_work']['loss'])
    return np.array(found)

  one, other = (
    losses(_statistics([mean] * 3, [std] * 3))[0]
    for mean, std in ((0.0, 1.0), (3.0, 2.0))
  )
  counts = number * (losses(pairs) - one) / (other - one)
  np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)
  assert np.all((counts > 0.5) & (counts < number - 0.5))
  assert len(set(np.round(counts))) > 1
  np.testing.assert_array_equal(losses(pairs), losses(pairs))
  assert np.any(losses(pairs) != losses(pairs, seed=1))


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    ({'model_fn': linear_task.model_fn}, ValueError, 'a model of images'),
    ({'epsilon': 0.0}, ValueError, 'epsilon must be positive, found 0.0'),
    ({'statistics': None}, TypeError, 'must hold mean and std.*NoneType'),
    ({'statistics': {'mean': []}}, ValueError, r"found \['mean'\]"),
    (
      {'statistics': _statistics([0.0], [1.0])},
      ValueError,
      r'arrays of shape \[3, 1\], found mean of shape \[1, 1\]',
    ),
    (
      {'statistics': _statistics([_NAN] * 3, [1.0] * 3)},
      ValueError,
      'some of them finite, found none',
    ),
    (
      {'statistics': _statistics([0.0] * 3, [1.0, -1.0, 1.0])},
      ValueError,
      'std not negative, found -1.0',
    ),
  ],
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _build(**options)
