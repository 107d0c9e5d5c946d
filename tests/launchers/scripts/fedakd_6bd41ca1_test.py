"""CFFL of FedAKD's public scripts against rounds by hand.

CGSV and FedAVE of these scripts are tested with the baselines.
"""

import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair.launchers.scripts import fedakd_6bd41ca1

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_RATE = 0.3
_SIZES = (5, 9, 12, 7, 0, 6)
_COHORTS = ([0, 1, 2, 3], [3, 4, 1, 5], [2, 0, 1, 3])


@functools.cache
def _validation():
  (data,) = linear_task.make_clients((150,), holdout=0, seed=5)
  return data.x, data.y


def _build(**options):
  return linear_task.build_process(
    fedakd_6bd41ca1.build_cffl,
    **{
      'learning_rate': _RATE,
      'num_clients': 6,
      'validation': _validation(),
      **options,
    },
  )


def _rounds():
  clients = linear_task.make_clients(_SIZES)
  clients[5].x[0, 0] = np.nan
  return [linear_task.pick(clients, cohort) for cohort in _COHORTS]


def _script(rounds, upload_rate, clip_value, threshold, alpha):
  w = linear_task.start()
  models, reputation = np.tile(w, (6, 1)), np.full(6, 1 / 6)
  for clients, cohort in zip(rounds, _COHORTS, strict=True):
    working = [i for i in clients if reputation[i] > 0]
    uploads = {}
    for i in working:
      trained = reference.LINEAR.train(w, clients[i], rate=_RATE)
      update = trained - w
      update *= min(1, clip_value / np.linalg.norm(update))
      uploads[i] = reference.largest(update, upload_rate * len(w) // 1)
      models[i] = trained + uploads[i]
    sizes = {i: len(clients[i].y) for i in working}
    mean = sum(sizes[i] * uploads[i] for i in working) / sum(sizes.values())
    accuracies = np.zeros(6)
    for i in working:
      right = reference.LINEAR.right(w + mean + uploads[i], *_validation())
      accuracies[i] = right.mean()
      models[i] += mean - sizes[i] / max(sizes.values()) * uploads[i]
    fresh = np.sinh(alpha * accuracies / accuracies.sum())
    rated = reputation / 2 + fresh / fresh.sum() / 2
    ids = list(cohort)
    rated[ids] /= rated[ids].sum()
    reputation[ids] = np.where(rated[ids] < threshold, 0, rated[ids])
    reputation /= reputation.sum()
    w = w + mean
    yield {
      'weights': w,
      'models': models.copy(),
      'server/reputation': reputation.copy(),
      'aggregator/clients/validation_accuracy': accuracies[sorted(clients)],
    }


def test_three_rounds_with_isolated_clients():
  process = _build(
    upload_rate=0.4,
    clip_value=0.2,
    reputation_threshold=0.24,
    punishment_factor=20.0,
  )
  reference_rounds = functools.partial(
    _script, upload_rate=0.4, clip_value=0.2, threshold=0.24, alpha=20.0
  )
  outputs = linear_task.assert_rounds(process, reference_rounds, _rounds())
  isolated = outputs[0].state.aggregator['reputation'][:4] == 0
  assert 0 < isolated.sum() < 4
  # It trains no more: its model stays as it was.
  (first, last) = (
    linear_task.client_weights(process, outputs[n].state) for n in (0, 2)
  )
  back = [i for i in (0, 1, 2, 3) if isolated[i]]
  np.testing.assert_array_equal(first[back], last[back])


def test_batch_norm_statistics_of_the_common_model_stay_as_they_were():
  process = _build(model_fn=linear_task.batch_norm_model_fn)
  clients = _rounds()[0]
  first = linear_task.next_round(process, process.initialize(), clients)
  last = linear_task.next_round(process, first.state, clients)
  for output in (first, last):
    mean, variance = process.get_model_weights(output.state).non_trainable
    np.testing.assert_array_equal(mean, np.zeros(4))
    np.testing.assert_array_equal(variance, np.ones(4))
  # Clients start from them again: one step leaves half of the first mean.
  found = process.client_model_table(last.state).non_trainable[0]
  for i, data in clients.items():
    np.testing.assert_allclose(found[i], data.x.mean(axis=0) / 2, rtol=1e-5)
