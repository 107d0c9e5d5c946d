import collections
import dataclasses
import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair.algorithms.baselines import fed_rdn

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_SIZES = (5, 9, 12)
_NAN = np.nan


def _statistics(mean, std):
  """Of clients with one channel."""
  return collections.OrderedDict(
    mean=np.array(mean, np.float32)[:, np.newaxis],
    std=np.array(std, np.float32)[:, np.newaxis],
  )


# Every draw gives those of the second client.
_ONE_KNOWN = _statistics([_NAN, 0.3, _NAN], [_NAN, 0.5, 1.0])


_build = functools.partial(
  linear_task.build_process,
  algorithms.build_fed_rdn,
  model_fn=linear_task.image_model_fn,
  num_clients=len(_SIZES),
  local_epochs=2,
  statistics=_ONE_KNOWN,
)


def _clients(sizes=_SIZES):
  return [linear_task.as_images(c) for c in linear_task.make_clients(sizes)]


def _data(clients):
  return [linear_task.client_data(i, c) for i, c in enumerate(clients)]


def test_channel_statistics_by_hand():
  # Channel means (1, 4) and (5, 0), deviations (1, 0) and (3, 0).
  first = [[[0, 4], [2, 4]]]
  second = [[[2, 0], [8, 0]]]
  found = fed_rdn.channel_statistics(np.array([first, second], np.float32))
  np.testing.assert_allclose(found['mean'], [3, 2])
  np.testing.assert_allclose(found['std'], [2, 0])


def test_statistics_are_gathered_before_the_first_round():
  clients = _clients((5, 9, 0, 7, 4))
  clients[3].x[0, 1, 0, 0] = np.inf
  gather = algorithms.build_channel_statistics(
    linear_task.image_model_fn, num_clients=6
  )
  # Client 1 is absent, 2 has no image, 3 one that is not finite.
  found = gather([linear_task.client_data(i, clients[i]) for i in (4, 2, 3, 0)])
  assert list(found) == ['mean', 'std']
  for name, per_image in (('mean', np.mean), ('std', np.std)):
    expected = np.full([6, 1], _NAN)
    for i in (0, 4):
      expected[i] = per_image(clients[i].x, axis=(1, 2)).mean(axis=0)
    np.testing.assert_allclose(found[name], expected, rtol=1e-5)
  _build(num_clients=6, statistics=found)


def test_normalize_for_client():
  def normalized(pixel, client_id, mean, std):
    images = np.full([2, 3, 3, 1], pixel)
    found = algorithms.normalize_for_client(
      images, _statistics(mean, std), client_id
    )
    assert (found.shape, found.dtype) == (images.shape, np.float32)
    assert np.all(found == found[0, 0, 0])
    return found[0, 0, 0, 0]

  found = normalized(0.5, 1, [0.9, 0.2], [0.4, 0.1])
  assert found == pytest.approx(2.99997)
  # Without statistics of its own, the mean over clients.
  for client_id in (0, None):
    found = normalized(0.5, client_id, [_NAN, 0.2, 0.4], [_NAN, 0.1, 0.3])
    assert found == pytest.approx(0.2 / 0.2, abs=1e-5)
  # A channel of one colour is bounded.
  for pixel, expected in ((0.6, 1000), (0.4, -1000), (0.5, 0)):
    assert normalized(pixel, 0, [0.5], [0.0]) == expected


def test_is_fed_avg_of_normalized_images():
  """And their distances, for which each client takes its own statistics."""
  clients, results = _clients(), []
  normalized = [
    dataclasses.replace(
      c, x=algorithms.normalize_for_client(c.x, _ONE_KNOWN, 1)
    )
    for c in clients
  ]
  model_fn = functools.partial(linear_task.image_model_fn, True)
  average = linear_task.build_process(
    algorithms.build_fed_avg, model_fn, num_clients=3, local_epochs=2
  )
  for process, data in (
    (_build(model_fn=model_fn), _data(clients)),
    (average, _data(normalized)),
  ):
    state = process.initialize()
    output = process.next(state, data)
    distances = process.divergence(state, output.state, data)
    loss = output.metrics['client_work']['loss']
    results.append((output.state.global_model_weights, loss, distances))
  assert results[0][2]['embedding_d_manhattan'] > 0.01
  linear_task.assert_close(*results, rtol=1e-4)


def test_each_image_draws_at_each_step():
  """Equal images in one minibatch: the loss counts the second statistics."""
  number, rounds = 16, 4
  (data,) = _clients((1,))
  x, y = np.repeat(data.x, number, axis=0), np.repeat(data.y, number)
  clients = [dataclasses.replace(data, x=x, y=y)]
  # The third row is that of a client without images: never drawn.
  pairs = _statistics([0.0, 3.0, _NAN], [1.0, 2.0, _NAN])

  def losses(statistics, seed=0):
    process = _build(
      statistics=statistics, learning_rate=0.0, local_epochs=1, seed=seed
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
  drawn = losses(pairs)
  counts = number * (drawn - one) / (other - one)
  np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)
  assert np.all((counts > 0.5) & (counts < number - 0.5))
  assert len(set(np.round(counts))) > 1
  assert np.any(losses(pairs, seed=1) != drawn)


def test_statistics_are_those_of_images_of_all_clients():
  linear_task.assert_refused(
    _build,
    ('model_fn', linear_task.model_fn, 'a model of images'),
    ('statistics', None, 'hold mean and std.*NoneType', TypeError),
    (
      'statistics',
      _statistics([0.0], [1.0]),
      r'arrays of shape \[3, 1\], found mean of shape \[1, 1\]',
    ),
    ('statistics', _statistics([_NAN] * 3, [1.0] * 3), 'finite, found none'),
    (
      'statistics',
      _statistics([0.0] * 3, [1.0, -1.0, 1.0]),
      'std not negative, found -1.0',
    ),
  )
  linear_task.assert_refused(
    algorithms.build_channel_statistics,
    ('model_fn', linear_task.model_fn, r'a model of images .* of shape \[4\]'),
    num_clients=3,
  )
