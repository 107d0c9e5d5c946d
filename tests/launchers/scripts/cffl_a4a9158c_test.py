"""CFFL's script against its steps in NumPy, for a linear model."""

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair.launchers.scripts import cffl_a4a9158c as script

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_SIZES = (4, 9, 6)
_START = linear_task.start()
_CLIP = 0.05
_SEED = 3


def _largest(vector, count):
  """Entries from the cut-off on, all ties included."""
  cut_off = np.sort(np.abs(vector))[::-1][count - 1]
  return np.where(np.abs(vector) >= cut_off, vector, 0.0)


def _drawn(vector, count, number):
  """The first `count` entries of the round's random order."""
  order = tf.random.stateless_uniform([len(vector)], [_SEED, number]).numpy()
  kept = np.argsort(-order, kind='stable')[:count]
  return np.where(np.isin(np.arange(len(vector)), kept), vector, 0.0)


def _rounds(
  clients,
  validation,
  num_rounds,
  *,
  learning_rate,
  upload_rate=1.0,
  pretrain=False,
  scenario='size',
  punishment_factor=5.0,
  punishment_rounds=30,
  aggregate_mode='sum',
  download='random',
):
  """Returns the values that `linear_task.assert_found` compares, by round."""
  count, size = len(clients), len(_START)
  amounts = np.array(
    [len(c.y) if scenario == 'size' else len(set(c.y)) for c in clients]
  )
  own_share = amounts / amounts.max()
  weights = amounts / amounts.sum() if scenario == 'size' else own_share
  if aggregate_mode == 'sum':
    weights = own_share = np.ones(count)
  server, models = _START, [_START] * count
  c, reputable = np.zeros(count), np.ones(count, bool)
  if pretrain:
    models = [
      reference.LINEAR.train(_START, d, rate=0.005, epochs=5) for d in clients
    ]
  for number in range(num_rounds):
    uploads, accuracies = [], []
    for j, data in enumerate(clients):
      after = reference.LINEAR.train(models[j], data, rate=learning_rate)
      update = np.clip(after - models[j], -_CLIP, _CLIP)
      models[j] = models[j] + update
      if upload_rate < 1:
        update = _largest(update, int(upload_rate * size))
      uploads.append(update)
      rated = server + update
      if upload_rate == 1 and not pretrain:
        rated = models[j]
      accuracies.append(reference.LINEAR.right(rated, *validation).mean())
    accuracies = np.where(reputable, accuracies, 0.0)
    c = 0.8 * c + 0.2 * accuracies / accuracies.sum()
    alpha = punishment_factor * (1 + number / punishment_rounds)
    c = np.sinh(alpha * np.where(reputable, c, 0.0))
    c = c / c.sum()
    bound = {'size': 1 / 3, 'class': 1 / 6}[scenario] / reputable.sum()
    was, reputable = reputable, reputable & (c >= bound)
    c = np.where(reputable, c, 0.0) / c[reputable].sum()
    total = sum(reputable[j] * weights[j] * uploads[j] for j in range(count))
    server = server + total
    share = c / c.max() * amounts / amounts.max()
    counts = np.floor(share * size + 1e-9).astype(int)
    for j in np.flatnonzero(reputable):
      if download == 'random':
        reward = _drawn(total, counts[j], number)
      else:
        reward = _largest(total, counts[j])
      models[j] = models[j] + reward - own_share[j] * uploads[j]
    yield {
      'models': np.array(models),
      'weights': server,
      'server/reputation': c,
      'server/reputable': reputable,
      'aggregator/threshold': bound,
      'aggregator/num_isolated': np.sum(was & ~reputable),
      'aggregator/all/num_allocated': counts,
      'aggregator/all/validation_accuracy': accuracies,
    }


def _validation():
  (data,) = linear_task.make_clients((60,), holdout=0)
  return data.x, data.y


def _process(build, num_clients, **options):
  options = {'learning_rate': 0.3, 'clip_value': _CLIP, **options}
  return linear_task.build_process(
    build,
    num_clients=num_clients,
    validation=_validation(),
    seed=_SEED,
    **options,
  )


# c of the first round is (.98, 0, .02): one is isolated.
_HARSH = {'punishment_factor': 300.0, 'learning_rate': 2.0}
_OPTIONS = [
  {'upload_rate': 0.4, 'aggregate_mode': 'mean', 'download': 'topk'},
  {'upload_rate': 0.4},
  {'punishment_rounds': 2},
  {'pretrain': True},
  {'aggregate_mode': 'mean', 'scenario': 'class', 'upload_rate': 0.4},
  {**_HARSH, 'aggregate_mode': 'mean', 'download': 'topk'},
]


@pytest.mark.parametrize('options', _OPTIONS, ids=str)
def test_three_rounds(options):
  options = {'learning_rate': 0.3, **options}
  clients = linear_task.make_clients(_SIZES)
  if options.get('scenario') == 'class':
    for data, number in zip(clients, (1, 3, 2), strict=True):
      data.y[:] = np.arange(len(data.y)) % number
  process = _process(script.build_cffl, len(clients), **options)
  state = process.initialize()
  expected = _rounds(clients, _validation(), 3, **options)
  everyone = dict(enumerate(clients))
  num_isolated = 0
  for values in expected:
    output = linear_task.next_round(process, state, everyone)
    state = output.state
    linear_task.assert_found(process, output, values, everyone)
    num_isolated += values['aggregator/num_isolated']
  assert bool(num_isolated) == ('punishment_factor' in options)


def test_first_round_is_the_paper_s_with_a_fifth_of_the_factor():
  """The history is 0 there, and no history in the paper."""
  everyone = dict(enumerate(linear_task.make_clients(_SIZES)))
  ours = _process(
    *(algorithms.build_cffl, 3),
    punishment_factor=1.0,
    upload_rate=0.4,
    ties='keep',
  )
  theirs = _process(
    *(script.build_cffl, 3),
    aggregate_mode='mean',
    download='topk',
    upload_rate=0.4,
  )
  found = [
    linear_task.client_weights(
      process,
      linear_task.next_round(process, process.initialize(), everyone).state,
    )
    for process in (ours, theirs)
  ]
  linear_task.assert_close(*found)


def test_a_single_participant_trains_alone():
  data = linear_task.make_clients((9,))[0]
  process = _process(script.build_cffl, 1)
  state = process.initialize()
  model = _START
  for _ in range(2):
    state = linear_task.next_round(process, state, {0: data}).state
    after = reference.LINEAR.train(model, data, rate=0.3)
    model = model + np.clip(after - model, -_CLIP, _CLIP)
  linear_task.assert_close(linear_task.client_weights(process, state)[0], model)
