import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_build = functools.partial(
  linear_task.build_process, algorithms.build_standalone, num_clients=6
)
_MOMENTUM = {'client_optimizer': linear_task.sgd(0.1, momentum=0.9)}


def _standalone(rounds, rate, decay=1.0, epochs=1, momentum=0.0):
  """The velocity of the momentum is kept from round to round."""
  start = linear_task.start()
  models, velocity = np.tile(start, (6, 1)), np.zeros([6, len(start)])
  for number, clients in enumerate(rounds):
    for i, data in clients.items():
      models[i], velocity[i], _ = reference.descend(
        functools.partial(reference.LINEAR.loss, data=data),
        models[i],
        rate * decay**number,
        epochs,
        momentum,
        velocity[i],
      )
    yield {'weights': start, 'models': models.copy()}


@pytest.mark.parametrize(
  ('options', 'of_reference'),
  [
    ({'learning_rate': 0.2, 'decay': 0.5, 'local_epochs': 2}, {}),
    pytest.param(
      _MOMENTUM, {'rate': 0.1, 'momentum': 0.9}, marks=pytest.mark.full
    ),
  ],
  ids=['rates', 'momentum'],
)
def test_three_rounds(options, of_reference):
  names = {'learning_rate': 'rate', 'local_epochs': 'epochs', 'decay': 'decay'}
  if not of_reference:
    of_reference = {names[name]: value for name, value in options.items()}
  rounds = linear_task.rounds()
  if options is _MOMENTUM:
    # A bad round leaves nothing, not even in the optimiser's state.
    (bad,) = linear_task.make_clients((6,))
    bad.x[0, 0] = np.inf
    rounds = [rounds[0], {**rounds[1], 0: bad}, rounds[2]]
  linear_task.assert_rounds(
    _build(**options), functools.partial(_standalone, **of_reference), rounds
  )
