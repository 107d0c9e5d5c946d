# /// script
# requires-python = "==3.11.*"
# dependencies = [
#   "fedjax==0.0.17",
#   "jax==0.4.26",
#   "jaxlib==0.4.26",
#   "dm-haiku==0.0.12",
#   "chex==0.1.86",
#   "flax==0.8.3",
#   "numpy<2",
#   "optax==0.2.2",
#   "scipy<1.13",
# ]
# ///
"""FedJAX's FedAvg: a round for each line read.

One process, whose XLA uses both cores within a step: with a client on each of
two host devices (`pmap`), the perceptron took longer. A maximum over a reshaped
array takes less time than `hk.max_pool`.
"""

import fedjax
from fedjax.algorithms import fed_avg
import haiku as hk
import jax
import lockstep
import numpy as np


def main() -> None:
  """Runs the rounds."""
  work = lockstep.work()
  clients = [
    fedjax.ClientDataset({'x': x, 'y': y})
    for x, y in zip(*lockstep.clients(work.path), strict=True)
  ]
  network = hk.transform(lambda batch: _MODELS[work.model](batch['x']))
  model = fedjax.create_model_from_haiku(
    network,
    clients[0].all_examples(),
    train_loss=lambda batch, outputs: (
      fedjax.metrics.unreduced_cross_entropy_loss(batch['y'], outputs)
    ),
  )
  algorithm = fed_avg.federated_averaging(
    fedjax.model_grad(model),
    fedjax.optimizers.sgd(work.rate),
    fedjax.optimizers.sgd(1.0),
    fedjax.ShuffleRepeatBatchHParams(
      batch_size=work.batch_size,
      num_epochs=work.local_epochs,
      drop_remainder=False,
    ),
  )
  key = jax.random.PRNGKey(0)
  state = algorithm.init(model.init(key))
  rng = np.random.default_rng(0)
  for number in lockstep.rounds():
    chosen = rng.choice(len(clients), work.cohort, replace=False)
    keys = jax.random.split(jax.random.fold_in(key, number), len(chosen))
    data = [
      (b'%d' % i, clients[i], own) for i, own in zip(chosen, keys, strict=True)
    ]
    state, _ = algorithm.apply(state, data)
    jax.block_until_ready(state.params)


def _cross_device(x):
  return hk.nets.MLP([128, 64, 10])(x)


def _pfl_cifar10(x):
  x = jax.nn.relu(hk.Conv2D(32, 3, padding='VALID')(x))
  x = jax.nn.relu(hk.Conv2D(64, 3, padding='VALID')(x))
  x = _dropout(_max_pool(x), 0.25)
  x = jax.nn.relu(hk.Linear(128)(hk.Flatten()(x)))
  return hk.Linear(10)(_dropout(x, 0.5))


def _dropout(x, rate):
  return hk.dropout(hk.next_rng_key(), rate, x)


def _max_pool(x):
  batch, rows, columns, channels = x.shape
  return x.reshape(batch, rows // 2, 2, columns // 2, 2, channels).max((2, 4))


_MODELS = {'cross_device': _cross_device, 'pfl_cifar10': _pfl_cifar10}


if __name__ == '__main__':
  main()
