import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12)
_START = linear_task.start()
_train = functools.partial(reference.LINEAR.train, epochs=2)


def _build(name, **options):
  if name == 'round_robin_fed_avg':
    options = {'total_examples': sum(_SIZES), **options}
  return linear_task.build_process(
    getattr(algorithms, f'build_{name}'),
    **{'learning_rate': 0.2, 'num_clients': 3, 'local_epochs': 2, **options},
  )


def _clients():
  return dict(enumerate(linear_task.make_clients(_SIZES)))


def _in_turn(num_calls):
  return [linear_task.pick(_clients(), [call % 3]) for call in range(num_calls)]


def _calls(rounds, merge, decay=1.0):
  """`merge(update, number of examples)` is added to the model."""
  w = _START
  downloaded = np.tile(w, (3, 1))
  for call, clients in enumerate(rounds):
    rate = 0.2 * decay ** (call // 3)
    w = w + sum(
      merge(_train(w, data, rate=rate) - w, len(data.y))
      for data in clients.values()
    )
    downloaded[list(clients)] = w
    yield {
      'weights': w,
      'models': downloaded.copy(),
      'client_work/num_clients': len(clients),
    }


@pytest.mark.parametrize(
  ('options', 'total'),
  [
    ({'decay': 0.5}, sum(_SIZES)),
    pytest.param({'total_examples': 10}, 10, marks=pytest.mark.full),
  ],
)
def test_fed_avg(options, total):
  reference_ = functools.partial(
    _calls,
    merge=lambda update, size: update * size / total,
    decay=options.get('decay', 1.0),
  )
  # At last, all clients in one call.
  linear_task.assert_rounds(
    _build('round_robin_fed_avg', **options),
    reference_,
    [*_in_turn(5), _clients()],
  )


def _selected(update, size, count, clip_value):
  del size  # It does not count.
  if clip_value is not None:
    update = np.clip(update, -clip_value, clip_value)
  return reference.largest(update, count)


@pytest.mark.parametrize(
  ('upload_rate', 'count', 'clip_value'),
  [
    (0.4, 6, None),
    # Of equal entries the first.
    pytest.param(0.4, 6, 1e-3, marks=pytest.mark.full),
    pytest.param(1.0, 15, 0.05, marks=pytest.mark.full),
    # .9 of an entry is none.
    pytest.param(0.06, 0, 0.05, marks=pytest.mark.full),
  ],
)
def test_dssgd(upload_rate, count, clip_value):
  merge = functools.partial(_selected, count=count, clip_value=clip_value)
  linear_task.assert_rounds(
    _build('dssgd', upload_rate=upload_rate, clip_value=clip_value, decay=0.5),
    functools.partial(_calls, merge=merge, decay=0.5),
    _in_turn(5),
  )
