import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_build = functools.partial(
  linear_task.build_process,
  algorithms.build_fed_mgda,
  num_clients=3,
  local_epochs=2,
)


def _fed_mgda(rounds, decay=1.0, by_size=False):
  """For two clients, or weights that must not differ from their shares."""
  w = linear_task.start()
  for number, clients in enumerate(rounds):
    rate = 0.1 * decay**number
    moved = np.array(
      [
        w - reference.LINEAR.train(w, data, rate=rate, epochs=2)
        for data in clients.values()
      ]
    )
    units = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    sizes = [len(data.y) for data in clients.values()]
    # Of two vectors of length 1, the shortest mix is half of each.
    w = w - rate * reference.mean(units, sizes if by_size else None)
    yield {'weights': w}


@pytest.mark.parametrize(
  ('options', 'cohorts'),
  [
    ({'decay': 0.5}, [[0, 2], [1, 2]]),
    pytest.param({'deviation': 0.0}, [[0, 1, 2]], marks=pytest.mark.full),
  ],
)
def test_rounds(options, cohorts):
  by_size = options.get('deviation') == 0
  linear_task.assert_rounds(
    _build(**options),
    functools.partial(
      _fed_mgda, decay=options.get('decay', 1.0), by_size=by_size
    ),
    linear_task.rounds(cohorts),
  )
