"""Methods with a linear model, against their papers' formulas.

Clients are absent, come late and come back; one has no data, and those of one
are not finite.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import client

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_START = linear_task.start()
_train = functools.partial(reference.LINEAR.train, epochs=2)
_loss = reference.LINEAR.loss


def _build(name, **options):
  return linear_task.build_process(
    getattr(algorithms, f'build_{name}'),
    **{'num_clients': 6, 'local_epochs': 2, **options},
  )


def _descents(loss, w, clients, rate):
  """The clients' models after two steps of `loss(v, id, data)`."""
  return np.array(
    [
      reference.descend(lambda v, i=i, d=d: loss(v, i, d), w, rate, 2)[0]
      for i, d in clients.items()
    ]
  )


def _sizes(clients):
  return [len(data.y) for data in clients.values()]


def _fed_avg(rounds, decay):
  """In minibatches of 4, in the order of the seed 5."""
  w = _START
  for number, clients in enumerate(rounds):
    models, losses, sizes = [], [], _sizes(clients)
    for (i, data), size in zip(clients.items(), sizes, strict=True):
      orders = reference.orders(5, number, i, 2, size)
      model, metrics = reference.descend_on_minibatches(
        *(_loss, w, data, 0.1 * decay**number, orders, 4)
      )
      models.append(model)
      losses.append(metrics['loss'])
    w = reference.mean(models, sizes)
    yield {
      'weights': w,
      'client_work/loss': np.average(losses, weights=sizes),
      'client_work/clients/loss': losses,
      'client_work/clients/num_examples': sizes,
      'client_work/num_examples': sum(sizes),
    }


def _fed_prox(rounds, proximal_weight, decay):
  """The server's optimiser has momentum."""
  w, velocity = _START, 0.0
  for number, clients in enumerate(rounds):

    def pulled(v, i, data, w=w):
      pull = proximal_weight / 2 * tf.reduce_sum((v - w) ** 2)
      return _loss(v, data) + pull

    models = _descents(pulled, w, clients, 0.1 * decay**number)
    velocity = 0.5 * velocity + w - reference.mean(models, _sizes(clients))
    w = w - velocity
    yield {'weights': w}


def _ditto(rounds):
  """The personal step has a momentum of its own."""
  w = _START
  models = np.tile(w, (6, 1))
  for clients in rounds:
    losses = []
    for i, data in clients.items():
      models[i], _, metrics = reference.descend(
        lambda v, d=data, w=w: _loss(v, d) + tf.reduce_sum((v - w) ** 2) / 4,
        *(models[i], 0.2, 2, 0.9),
      )
      losses.append(metrics['loss'])
    w = reference.fed_avg(w, clients.values(), rate=0.1, epochs=2)
    yield {
      'weights': w,
      'models': models.copy(),
      'client_work/clients/personal_loss': losses,
    }


def _standalone(rounds):
  """The velocity of the momentum is kept from round to round."""
  models, velocity = np.tile(_START, (6, 1)), np.zeros([6, len(_START)])
  for number, clients in enumerate(rounds):
    for i, data in clients.items():
      models[i], velocity[i], _ = reference.descend(
        functools.partial(_loss, data=data),
        *(models[i], 0.1 * 0.5**number, 2, 0.9, velocity[i]),
      )
    yield {'weights': _START, 'models': models.copy()}


def _q_fed_avg(rounds, q, decay):
  """Sums of Delta_i and of h_i, as in the paper."""
  w = _START
  for number, clients in enumerate(rounds):
    rate = 0.1 * decay**number
    losses, deltas, weights = [], [], []
    for data in clients.values():
      loss = float(_loss(w, data))
      change = (w - _train(w, data, rate=rate)) / rate
      losses.append(loss)
      deltas.append(loss**q * change)
      weights.append(q * loss ** (q - 1) * change @ change + loss**q / rate)
    w = w - sum(deltas) / sum(weights)
    yield {
      'weights': w,
      'aggregator/weight_sum': sum(weights),
      'client_work/clients/loss_before': losses,
    }


def _fed_mgda(rounds, decay=1.0, deviation=1.0):
  """For two clients, or weights that must not differ from their shares."""
  w = _START
  for number, clients in enumerate(rounds):
    rate = 0.1 * decay**number
    moved = [w - _train(w, data, rate=rate) for data in clients.values()]
    units = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    # Of two vectors of length 1, the shortest mix is half of each.
    w = w - rate * reference.mean(units, None if deviation else _sizes(clients))
    yield {'weights': w}


def _nearest_shares(vector):
  """The nearest point of the simplex, by sorting."""
  largest = np.sort(vector)[::-1]
  shifts = (np.cumsum(largest) - 1) / np.arange(1, len(vector) + 1)
  return np.maximum(vector - shifts[largest > shifts][-1], 0)


def _afl(rounds, mixture_rate, decay):
  """The weights of absent clients change, too."""
  w, shares = _START, np.full(6, 1 / 6)
  for number, clients in enumerate(rounds):
    ids, losses = list(clients), np.zeros(6)
    losses[ids] = [float(_loss(w, data)) for data in clients.values()]
    rate = 0.1 * decay**number
    w = reference.mean(
      [_train(w, data, rate=rate) for data in clients.values()], shares[ids]
    )
    yield {
      'weights': w,
      'client_work/clients/loss_before': losses[ids],
      'client_work/clients/weight': shares[ids],
      'table/weight': shares[:, np.newaxis],
      'table/loss': losses[:, np.newaxis],
    }
    shares = _nearest_shares(shares + mixture_rate * losses)


def _fed_fv(rounds, keep_share, memory_rounds, decay=1.0):
  """Client by client; the last updates are kept with their round."""
  w, memory, counts = _START, {}, []
  for number, clients in enumerate(rounds):
    rate = 0.1 * decay**number
    updates = [w - _train(w, data, rate=rate) for data in clients.values()]
    losses = [float(_loss(w, data)) for data in clients.values()]
    order = np.argsort(losses)
    first = int(np.ceil((len(order) - 1) * (1 - keep_share)))
    kept = set(order[first:]) if keep_share else set()
    projected, counts = [], [0, 0]
    for i, update in enumerate(updates):
      g = update
      for j in order if i not in kept else ():
        if i != j and g @ updates[j] < 0:
          g = g - g @ updates[j] / (updates[j] @ updates[j]) * updates[j]
          counts[0] += 1
      projected.append(g)
    g = reference.mean(projected)
    memory |= {i: (number, u) for i, u in zip(clients, updates, strict=True)}
    if number >= memory_rounds:
      for past in range(number - memory_rounds, number):
        against = [u for n, u in memory.values() if n == past and u @ g < 0]
        if against:
          c = sum(against)
          g = g - g @ c / (c @ c) * c
          counts[1] += len(against)
    length = np.linalg.norm(reference.mean(updates))
    w = w - length / np.linalg.norm(g) * g
    yield {
      'weights': w,
      'aggregator/num_internal_conflicts': counts[0],
      'aggregator/num_external_conflicts': counts[1],
      'aggregator/scale': length / np.linalg.norm(g),
    }


def _gifair_fl(rounds, spread_share, decay, groups=range(6)):
  """A client of a single group has its share of the examples."""
  w = _START
  for number, clients in enumerate(rounds):
    losses = [float(_loss(w, data)) for data in clients.values()]
    shares = np.array(_sizes(clients)) / sum(_sizes(clients))
    own = np.array([groups[i] for i in clients])
    means = {g: np.mean(np.array(losses)[own == g]) for g in own}
    sizes = np.array([np.sum(own == g) for g in own])
    ranks = [
      sum(np.sign(means[g] - means[other]) for other in means) for g in own
    ]
    largest = np.min(shares * sizes) / max(len(means) - 1, 1)
    rate = 0.1 * decay**number
    models = [_train(w, data, rate=rate) for data in clients.values()]
    w = (shares + spread_share * largest * np.array(ranks) / sizes) @ models
    yield {'weights': w, 'client_work/clients/loss_before': losses}


def _prop_fair(rounds, loss_bound, linear_width, decay):
  """The logarithm goes on as its tangent."""
  w, edge = _START, loss_bound - linear_width

  def bent(v, i, data):
    del i  # The same for all.
    loss = _loss(v, data)
    if loss <= edge:
      return -tf.math.log(1 - loss / loss_bound)
    return (loss - edge) / linear_width - np.log(linear_width / loss_bound)

  for number, clients in enumerate(rounds):
    rate, losses = 0.1 * decay**number, []
    for data in clients.values():
      _, _, metrics = reference.descend(
        lambda v, data=data: bent(v, 0, data), w, rate, 2
      )
      losses.append(metrics['loss'])
    w = reference.mean(_descents(bent, w, clients, rate), _sizes(clients))
    yield {'weights': w, 'client_work/clients/loss': losses}


def _term(rounds, tilt, decay, uniform=False):
  w = _START
  for number, clients in enumerate(rounds):
    losses = np.array([float(_loss(w, data)) for data in clients.values()])
    rate = 0.1 * decay**number
    models = [_train(w, data, rate=rate) for data in clients.values()]
    sizes = 1 if uniform else np.array(_sizes(clients))
    w = reference.mean(models, sizes * np.exp(tilt * losses))
    yield {
      'weights': w,
      'aggregator/largest_loss': losses.max(),
      'client_work/clients/loss_before': losses,
    }


def _scaffold(rounds, decay=1.0, server_learning_rate=1.0):
  """The server's control variate is accumulated from round to round."""
  x, c = _START, 0.0
  controls = np.zeros([6, len(x)])
  for number, clients in enumerate(rounds):
    rate, ids = 0.1 * decay**number, list(clients)

    def corrected(v, i, data, c=c):
      return _loss(v, data) + tf.tensordot(v, c - controls[i], 1)

    trained = _descents(corrected, x, clients, rate)
    change = (x - trained) / (2 * rate) - c
    # In c, absent clients count as unchanged.
    c = c + len(ids) / 6 * reference.mean(change)
    controls[ids] += change
    x = x + server_learning_rate * reference.mean(trained - x)
    yield {'weights': x, 'table/control': controls.copy()}


def _fed_dc(
  rounds, decay=1.0, drift_weight=1.0, grad_correction=True, drifts='all'
):
  """The server's gradient G is accumulated from round to round."""
  w, total = _START, 0.0
  own, gradients = (np.zeros([6, len(w)]) for _ in range(2))
  for number, clients in enumerate(rounds):
    rate, ids = 0.1 * decay**number, list(clients)
    shifts = total - gradients

    def drifting(v, i, data, w=w, shifts=shifts):
      pull = drift_weight / 2 * tf.reduce_sum((v + own[i] - w) ** 2)
      return _loss(v, data) + pull + tf.tensordot(v, shifts[i], 1)

    models = _descents(drifting, w, clients, rate)
    own[ids] += models - w
    if grad_correction:
      # Absent clients count as unchanged.
      change = (w - models) / (2 * rate) - total
      gradients[ids] += change
      total = total + change.sum(axis=0) / 6
    w = reference.mean(models) + reference.mean(
      own[ids] if drifts == 'present' else own
    )
    yield {
      'weights': w,
      'table/drift': own.copy(),
      'table/gradient': gradients.copy(),
    }


def _one_by_one(rounds, merge, decay=1.0, start='download'):
  """`merge(update, number of examples)` is added to the model."""
  w = _START
  downloaded = np.tile(w, (6, 1))
  for call, clients in enumerate(rounds):
    rate = 0.1 * decay ** (call // 6)
    first = {i: downloaded[i] if start == 'own' else w for i in clients}
    w = w + sum(
      merge(_train(first[i], data, rate=rate) - first[i], len(data.y))
      for i, data in clients.items()
    )
    downloaded[list(clients)] = w
    yield {'weights': w, 'models': downloaded.copy()}


def _round_robin_fed_avg(rounds, total_examples, **options):
  return _one_by_one(
    rounds, lambda u, size: u * size / total_examples, **options
  )


def _dssgd(rounds, upload_rate, clip_value=0.01, ties='index', **options):
  bound = np.inf if clip_value is None else clip_value

  def merge(update, size):
    del size  # It does not count.
    clipped = np.clip(update, -bound, bound)
    kept = reference.largest(clipped, int(upload_rate * len(update)))
    if ties == 'keep':
      kept = clipped * (np.abs(clipped) >= np.abs(kept[kept != 0]).min())
    return kept

  return _one_by_one(rounds, merge, **options)


# One by one; after six, the learning rate decays; at last, several in one.
_IN_TURN = [[0], [1], [2], [3], [4], [5], [1], [0, 2]]
_CASES = (
  (_q_fed_avg, {'q': 2.0, 'decay': 0.5}),
  (_afl, {'mixture_rate': 0.2, 'decay': 0.5}),
  (_term, {'tilt': 2.0, 'decay': 0.5}),
  (_term, {'tilt': 2.0, 'decay': 0.5, 'uniform': True}),
  # At the first step, losses lie on both sides of 1.13.
  (_prop_fair, {'loss_bound': 1.5, 'linear_width': 0.37, 'decay': 0.5}),
  (_gifair_fl, {'spread_share': 0.9, 'decay': 0.5}),
  (
    _gifair_fl,
    {'spread_share': 0.9, 'decay': 0.5, 'groups': (7, 1, 7, 1, 2, 0)},
    [[0, 1, 2, 3], [0, 2], [1, 4, 5, 0]],
  ),
  # With up to two conflicts of each kind in a round.
  (
    _fed_fv,
    {'keep_share': 0.4, 'memory_rounds': 1},
    [[0, 1, 3, 4], [1, 2], [0, 5, 2, 3], [3]],
  ),
  (
    _fed_fv,
    {'keep_share': 0.0, 'memory_rounds': 2, 'decay': 0.5},
    [[0, 1, 3], [0, 1, 3], [0], [2]],
  ),
  (_scaffold, {'server_learning_rate': 0.3, 'decay': 0.5}),
  (_fed_dc, {'drift_weight': 0.2, 'decay': 0.5}),
  (_fed_dc, {'grad_correction': False}),
  (_fed_dc, {'drifts': 'present', 'grad_correction': False}),
  (_fed_dc, {'drifts': 'present'}),
  (_fed_mgda, {'decay': 0.5}, [[0, 2], [1, 2]]),
  (_fed_mgda, {'deviation': 0.0}, [[0, 1, 2]]),
  (_round_robin_fed_avg, {'total_examples': 26, 'decay': 0.5}, _IN_TURN),
  (_dssgd, {'upload_rate': 0.4, 'clip_value': None, 'decay': 0.5}, _IN_TURN),
  # Of equal entries the first.
  (_dssgd, {'upload_rate': 0.4, 'clip_value': 1e-3}, _IN_TURN),
  # The second turn of client 1 begins where its first ended.
  (
    _round_robin_fed_avg,
    {'total_examples': 26, 'decay': 0.5, 'start': 'own'},
    _IN_TURN,
  ),
  (
    _dssgd,
    {'upload_rate': 0.4, 'clip_value': 1e-3, 'ties': 'keep', 'start': 'own'},
    _IN_TURN,
  ),
  # .9 of an entry is none.
  (_dssgd, {'upload_rate': 0.06}, _IN_TURN[:2]),
)


def _check(process, expected, cohorts=None):
  return linear_task.assert_rounds(
    process,
    expected,
    linear_task.rounds(*([cohorts] if cohorts else [])),
    # Differences of models, divided by the learning rate.
    loose=['table/control', 'table/gradient'],
  )


@pytest.mark.parametrize(
  ('expected', 'options', 'cohorts'),
  [
    pytest.param(
      expected,
      options,
      *(cohorts or [None]),
      id=f'{expected.__name__} {options}',
    )
    for expected, options, *cohorts in _CASES
  ],
)
def test_rounds(expected, options, cohorts):
  process = _build(expected.__name__.removeprefix('_'), **options)
  _check(process, functools.partial(expected, **options), cohorts)


def test_fed_prox():
  options = {'proximal_weight': 2.0, 'decay': 0.5}
  server_optimizer = linear_task.sgd(1.0, momentum=0.5)
  _check(
    _build('fed_prox', server_optimizer=server_optimizer, **options),
    functools.partial(_fed_prox, **options),
  )


def test_fed_avg():
  _check(
    _build('fed_avg', decay=0.5, batch_size=4, seed=5),
    functools.partial(_fed_avg, decay=0.5),
  )


def test_ditto():
  process = _build(
    'ditto',
    proximal_weight=0.5,
    # The function replaces the optimiser's rate.
    personal_optimizer=linear_task.sgd(9.0, momentum=0.9),
    personal_learning_rate_fn=lambda _: tf.constant(0.2),
  )
  *_, before, after = (o.state for o in _check(process, _ditto))
  table = process.client_model_table(after).trainable
  found = process.get_client_model_weights(after, 1).trainable
  linear_task.assert_equal([rows[1] for rows in table], found)
  # The divergence is that of the personal models.
  ids = [1, 3, 0]
  (clients,) = linear_task.rounds([ids])
  found = process.divergence(
    *(before, after),
    [linear_task.client_data(i, data) for i, data in clients.items()],
  )
  distances = np.abs(
    linear_task.client_weights(process, after)[ids]
    - linear_task.weights(process, after)
  )
  assert found['parameters_d_manhattan'] == pytest.approx(
    np.mean(distances.sum(axis=1)), rel=1e-5
  )


def test_a_client_whose_personal_model_diverges_is_dropped():
  process = _build('ditto', personal_optimizer=linear_task.sgd(1e38))
  clients = linear_task.make_clients((5, 9))
  output = linear_task.run(process, clients, [[0, 1]])
  assert output.metrics['client_work']['num_rejected_clients'] == 2
  for rows in process.client_model_table(output.state).trainable:
    linear_task.assert_equal(rows[0], rows[3])  # Client 3 was not there.


def test_standalone():
  process = _build(
    'standalone',
    decay=0.5,
    client_optimizer=linear_task.sgd(0.1, momentum=0.9),
  )
  # A bad round leaves nothing, not even in the optimiser's state.
  (bad,) = linear_task.make_clients((6,))
  bad.x[0, 0] = np.inf
  first, second, third = linear_task.rounds()
  linear_task.assert_rounds(
    process, _standalone, [first, {**second, 0: bad}, third]
  )


@pytest.mark.parametrize(
  ('name', 'memory', 'options', 'num_steps'),
  [
    ('scaffold', 'control', {}, (4, 6)),
    ('fed_dc', 'gradient', {'drift_weight': 0.0}, (4, 6)),
  ],
)
def test_the_number_of_steps_is_that_of_minibatches(
  name, memory, options, num_steps
):
  """In two epochs over 5 and over 9 examples, in minibatches of 4."""
  process = _build(name, batch_size=4, **options)
  clients = linear_task.make_clients((5, 9))
  for i, number in enumerate(num_steps):
    state = linear_task.run(process, clients, [[i]]).state
    rows = linear_task.client_vectors(state.client_work['table'][memory])
    moved = _START - linear_task.weights(process, state)
    if name == 'fed_dc':  # Its mean drift, over 6 clients, is added.
      moved /= 1 + 1 / 6
    linear_task.assert_close(rows[i] * number * 0.1, moved, rtol=1e-4)


def test_groups():
  linear_task.assert_refused(
    functools.partial(_build, 'gifair_fl'),
    ('groups', '012345', 'a sequence of integers, .*found', TypeError),
    ('groups', (0, 1), 'an entry for each of the 6 clients, found 2'),
    ('groups', (0, 1, 2, 3, 4, -1), 'at least 0, found -1'),
    ('groups', (0, 1, 2, 3, 4, 0.5), 'an integer, found 0.5', TypeError),
  )


@pytest.mark.parametrize('name', ('scaffold', 'fed_dc'))
def test_needs_plain_sgd(name):
  momentum = linear_task.sgd(0.1, momentum=0.9)
  for optimizer in (
    momentum,
    client.with_weight_decay(linear_task.sgd(0.1), 1e-3),
    tff.learning.optimizers.build_adam(0.1),
  ):
    linear_task.assert_refused(
      functools.partial(_build, name),
      ('client_optimizer', optimizer, 'plain SGD for .*found'),
    )
  if name == 'fed_dc':  # Without the correction, any is accepted.
    _build(name, client_optimizer=momentum, grad_correction=False)
