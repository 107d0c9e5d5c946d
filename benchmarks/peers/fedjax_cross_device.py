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
"""FedJAX's FedAvg on the workload `cross_device`: a round for each line read.

`benchmarks.peer` starts it with the file of the clients' examples. It answers
each line with one when the round is done, and ends with its input.
"""

import sys

import fedjax
from fedjax.algorithms import fed_avg
import haiku as hk
import jax
import numpy as np


def main() -> None:
  """Runs the rounds."""
  path, cohort, batch_size, rate, *widths = sys.argv[1:]
  with np.load(path) as arrays:
    clients = [
      fedjax.ClientDataset({'x': x, 'y': y})
      for x, y in zip(arrays['x'], arrays['y'], strict=True)
    ]
  network = hk.transform(
    lambda batch: hk.nets.MLP([*map(int, widths)])(batch['x'])
  )
  model = fedjax.create_model_from_haiku(
    network,
    clients[0].all_examples(),
    train_loss=lambda batch, outputs: (
      fedjax.metrics.unreduced_cross_entropy_loss(batch['y'], outputs)
    ),
  )
  algorithm = fed_avg.federated_averaging(
    fedjax.model_grad(model),
    fedjax.optimizers.sgd(float(rate)),
    fedjax.optimizers.sgd(1.0),
    fedjax.ShuffleRepeatBatchHParams(
      batch_size=int(batch_size), num_epochs=1, drop_remainder=False
    ),
  )
  key = jax.random.PRNGKey(0)
  state = algorithm.init(model.init(key))
  rng = np.random.default_rng(0)
  for number, _ in enumerate(sys.stdin):
    chosen = rng.choice(len(clients), int(cohort), replace=False)
    keys = jax.random.split(jax.random.fold_in(key, number), len(chosen))
    data = [
      (b'%d' % i, clients[i], own) for i, own in zip(chosen, keys, strict=True)
    ]
    state, _ = algorithm.apply(state, data)
    jax.block_until_ready(state.params)
    print('done', flush=True)


if __name__ == '__main__':
  main()
