"""CGSV and FedAVE, and as in FedAKD's scripts: ratings and rewards."""

import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair.launchers.scripts import fedakd_6bd41ca1

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_RATE = 0.3
_START = linear_task.start()
_TINY = 1e-12
# FedAVE's losses are measured over minibatches of 64: 2, 3, 1 and 3 of them.
_SIZES = {'cgsv': (5, 9, 12, 7, 0, 6), 'fed_ave': (70, 150, 40, 130, 0, 6)}
_COHORTS = ([0, 1, 2, 3], [3, 4, 1, 5], [2, 0, 1, 3])


@functools.cache
def _validation():
  (data,) = linear_task.make_clients((150,), holdout=0, seed=5)
  return data


def _build(name, script=False, **options):
  if name == 'fed_ave':
    options['validation'] = _validation().x, _validation().y
  return linear_task.build_process(
    getattr(fedakd_6bd41ca1 if script else algorithms, f'build_{name}'),
    learning_rate=_RATE,
    num_clients=6,
    batch_size=200,
    **options,
  )


def _rounds(name):
  clients = linear_task.make_clients(_SIZES[name])
  clients[5].x[0, 0] = np.nan
  return [linear_task.pick(clients, cohort) for cohort in _COHORTS]


def _top(vector, share):
  return reference.largest(vector, np.floor(share * len(vector)))


def _gift(aggregate, share):
  """Of the kernel and of the bias, `ceil(share * size)` entries."""
  return np.concatenate(
    [
      reference.largest(part, np.ceil(share * len(part)))
      for part in (aggregate[:12], aggregate[12:])
    ]
  )


def _batch_losses(w, data):
  losses = reference.focal_losses(
    reference.LINEAR.outputs(w, data.x)[1], data.y
  )
  parts = np.split(losses, range(64, len(data.y), 64))
  return np.array([np.mean(part) for part in parts])


def _divergence(w, data):
  """KL of the losses' distributions, None if one is too short."""
  mine, servers = _batch_losses(w, data), _batch_losses(w, _validation())
  length = min(len(mine), len(servers))
  if length < 2:
    return None
  p, q = (
    np.maximum(v[:length] / v[:length].sum(), _TINY) for v in (mine, servers)
  )
  return np.sum(p * np.log(p / q))


def _rewards(
  rounds,
  name,
  epochs=1,
  update_length=0.5,
  history_weight=None,
  altruism=1.0,
  upload_fraction=0.5,
  download_base=0.3,
  script=False,
):
  """Both methods. Those who do not count take part, with updates of 0."""
  original, w = not script, _START
  history = history_weight or {'cgsv': 0.95, 'fed_ave': 0.9}[name]
  models = np.tile(w, (6, 1))
  reputation = np.full(6, 0.0 if original else 1 / 6)
  for clients, cohort in zip(rounds, _COHORTS, strict=True):
    ids = sorted(cohort)
    starts = models[ids] if original else np.tile(w, (len(ids), 1))
    updates = np.zeros([len(ids), len(w)])
    sizes = np.zeros(len(ids))
    for row, i in enumerate(ids):
      if i in clients:
        sizes[row] = len(clients[i].y)
        updates[row] = -starts[row] + reference.LINEAR.train(
          starts[row], clients[i], rate=_RATE, epochs=epochs
        )
    lengths = np.linalg.norm(updates, axis=1, keepdims=True)
    uploads = update_length * updates / (lengths + 1e-7)
    before = reputation[ids]
    if name == 'cgsv':
      factors = before if before.any() else sizes
      if not original:
        factors, uploads = sizes > 0, updates
      aggregate = factors / factors.sum() @ uploads
      phi = np.array([reference.cosine(u, aggregate) for u in uploads])
      if not original:
        phi = np.maximum(phi, 0)
      score = np.maximum(history * before + (1 - history) * phi, 1e-3)
      measured = {'contribution': phi}
    else:
      accuracy = (sizes > 0) * [
        reference.LINEAR.right(start, _validation().x, _validation().y).mean()
        for start in starts + updates
      ]
      if original:
        kl = [
          _divergence(start, clients[i]) if i in clients else None
          for i, start in zip(ids, starts, strict=True)
        ]
        # A missing divergence counts as the largest of the others.
        worst = max((d for d in kl if d is not None), default=1.0)
        kl = np.array([worst if d is None else d for d in kl])
        close = 1 / (kl + _TINY) / np.max(1 / (kl + _TINY))
        score = accuracy * close**2
        if before.any():
          score = history * before + (1 - history) * score
        score = np.maximum(score, 1e-3)
      else:
        uploads = np.array([_top(u, upload_fraction) for u in updates])
        score = history * before + (1 - history) * accuracy
      aggregate = sizes / sizes.sum() @ uploads
      measured = {'validation_accuracy': accuracy}
      if original:
        measured['divergence'] = kl
    reputation[ids] = score
    reputation /= reputation.sum()
    earned = np.tanh(altruism * reputation[ids])
    share = earned / earned.max()
    if name == 'fed_ave' and original:
      share = close * share if before.any() else 0.0 * share
    elif name == 'fed_ave':
      share = np.clip(download_base + (1 - download_base) * earned, 0, 1)
    for row, i in enumerate(ids):
      if original:
        models[i] += _gift(aggregate, share[row])
      else:
        if sizes[row]:
          models[i] = w + updates[row]
        models[i] += _top(aggregate, share[row])
    w = w + aggregate
    shares = np.zeros(6)
    shares[ids] = share
    yield {
      'weights': w,
      'models': models.copy(),
      'server/reputation': reputation.copy(),
      'server/share': shares,
      **{
        f'aggregator/clients/{k}': each[[i in clients for i in ids]]
        for k, each in measured.items()
      },
    }


_OPTIONS = {'update_length': 0.2, 'history_weight': 0.3, 'altruism': 9.0}


@pytest.mark.parametrize(
  ('name', 'options'),
  [
    ('cgsv', {'epochs': 2, **_OPTIONS}),
    ('fed_ave', {'epochs': 2, **_OPTIONS}),
    ('cgsv', {'script': True}),
    (
      'fed_ave',
      {
        'upload_fraction': 0.3,
        'download_base': 0.1,
        'history_weight': 0.5,
        'altruism': 4.0,
        'script': True,
      },
    ),
  ],
)
def test_three_rounds(name, options):
  """A client without data, and one whose data are not finite, get gifts."""
  arguments = dict(options)
  arguments['local_epochs'] = arguments.pop('epochs', 1)
  outputs = linear_task.assert_rounds(
    _build(name, **arguments),
    functools.partial(_rewards, name=name, **options),
    _rounds(name),
    # Divergences are squares of the rounding errors of float32 losses.
    loose=[
      'server/reputation',
      'server/share',
      'aggregator/clients/divergence',
    ],
  )
  share = outputs[-1].state.aggregator['share']
  assert 0 < share[:4].min() < 0.97
