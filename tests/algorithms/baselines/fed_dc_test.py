import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_process = functools.partial(
  linear_task.build_process,
  algorithms.build_fed_dc,
  num_clients=6,
  local_epochs=2,
)


def _local_loss(v, data, centre, shift, drift_weight):
  """The term of the gradient is not part of the reported loss."""
  pulled = drift_weight / 2 * tf.reduce_sum((v - centre) ** 2)
  pulled += reference.LINEAR.loss(v, data)
  return pulled + tf.reduce_sum(v * shift), {'pulled': pulled}


def _fed_dc(
  rounds,
  decay=1.0,
  drift_weight=1.0,
  grad_correction=True,
  variant='original',
):
  """The server's gradient G is accumulated from round to round."""
  w, total = linear_task.start(), 0.0
  drifts, gradients = (np.zeros([6, len(w)]) for _ in range(2))
  script = variant == 'fedakd'
  for number, clients in enumerate(rounds):
    rate, ids = 0.1 * decay**number, list(clients)
    models, losses = [], []
    for i, data in clients.items():
      loss = functools.partial(
        _local_loss,
        data=data,
        centre=w - drifts[i],
        shift=total - gradients[i],
        drift_weight=drift_weight,
      )
      y, _, metrics = reference.descend(loss, w, rate, 2)
      models.append(y)
      losses.append(metrics['pulled'])
    models = np.array(models)
    drifts[ids] += models - w
    if grad_correction and not script:
      # Absent clients count as unchanged.
      change = (w - models) / (2 * rate) - total
      gradients[ids] += change
      total = total + change.sum(axis=0) / 6
    if script:
      w = reference.mean(models + drifts[ids])
    else:
      w = reference.mean(models) + reference.mean(drifts)
    yield {
      'weights': w,
      'table/drift': drifts.copy(),
      'table/gradient': gradients.copy(),
      'client_work/loss': np.average(
        losses, weights=[len(data.y) for data in clients.values()]
      ),
    }


@pytest.mark.parametrize(
  'options',
  [
    {},
    pytest.param({'drift_weight': 0.2, 'decay': 0.5}, marks=pytest.mark.full),
    pytest.param({'grad_correction': False}, marks=pytest.mark.full),
    {'variant': 'fedakd'},
  ],
  ids=str,
)
def test_three_rounds(options):
  linear_task.assert_rounds(
    _process(**options),
    functools.partial(_fed_dc, **options),
    linear_task.rounds(),
    loose=['table/gradient'],
  )


@pytest.mark.full
def test_the_number_of_steps_is_that_of_minibatches():
  """In two epochs over 5 and over 9 examples, in minibatches of 4."""
  process = _process(batch_size=4)
  for i, number in enumerate((4, 6)):
    clients = linear_task.make_clients((5, 9))
    table = linear_task.run(process, clients, [[i]]).state.client_work['table']
    drifts, gradients = (
      linear_task.client_vectors(table[name]) for name in ('drift', 'gradient')
    )
    linear_task.assert_close(gradients[i] * number * 0.1, -drifts[i], rtol=1e-4)
