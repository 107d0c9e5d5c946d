import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair.launchers.scripts import fedaboost_10bd01a1 as script

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_LINEAR = reference.LINEAR


def _fedaboost(rounds):
  w = linear_task.start()
  for clients in rounds:
    models, alphas = [], []
    for data in clients.values():
      models.append(_LINEAR.train(w, data, rate=0.1, epochs=2))
      right = _LINEAR.right(models[-1], data.holdout_x, data.holdout_y).mean()
      right = np.clip(right, 1e-6, 1 - 1e-6)
      odds = np.log(right / (1 - right))
      # ln(k - 1); alone, a client has alpha 0.
      alone = len(clients) == 1
      alphas.append(0 if alone else odds + np.log(len(clients) - 1))
    positive = np.maximum(alphas, 0)
    if positive.any():
      w = reference.mean(models, positive)
    yield {'weights': w, 'client_work/clients/alpha': np.array(alphas)}


def test_rounds_by_hand():
  process = linear_task.build_process(
    script.build_fedaboost, num_clients=6, local_epochs=2
  )
  linear_task.assert_rounds(
    process, _fedaboost, linear_task.rounds([[0, 1, 3], [1, 2], [2]])
  )
