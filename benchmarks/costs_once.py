"""One point of `benchmarks.costs`, in a separate process.

  python -m benchmarks.costs_once CLIENTS_EXAMPLES_PARAMETERS_AND_ROUNDS

The argument is JSON, `[clients, examples, parameters, rounds]`. Prints JSON,
`[seconds, MiB, parameters]`: the median of the rounds after the first two, the
peak of the process's memory less what it had before the data were made, and the
model's real size.
"""

import json
import resource
import sys
import time

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import algorithms
from tff_fair import client
from tff_fair import runtime

_INPUTS, _CLASSES = 64, 10
_BATCH, _RATE = 20, 0.1
_UNCOUNTED = 2


def main(argv: list[str]) -> None:
  """Trains a perceptron with one hidden layer by FedAvg."""
  num_clients, examples, parameters, rounds = json.loads(argv[1])
  width = max(1, round((parameters - _CLASSES) / (_INPUTS + 1 + _CLASSES)))
  runtime.set_execution_context('device')
  before = _peak()
  process = algorithms.build_fed_avg(
    lambda: _perceptron(width),
    num_clients=num_clients,
    client_optimizer=tff.learning.optimizers.build_sgdm(_RATE),
    batch_size=_BATCH,
  )
  rng = np.random.default_rng(0)
  nobody = np.zeros([0, _INPUTS], np.float32), np.zeros([0], np.int32)
  data = [
    client.build_client_data(
      i,
      (
        rng.random([examples, _INPUTS], np.float32),
        rng.integers(_CLASSES, size=examples, dtype=np.int32),
      ),
      nobody,
    )
    for i in range(num_clients)
  ]
  state = process.initialize()
  seconds = []
  for _ in range(rounds):
    began = time.perf_counter()
    state = process.next(state, data).state
    seconds.append(time.perf_counter() - began)
  size = sum(w.size for w in process.get_model_weights(state).trainable)
  print(json.dumps([np.median(seconds[_UNCOUNTED:]), _peak() - before, size]))


def _perceptron(width) -> tf.keras.Model:
  return tf.keras.Sequential(
    [
      tf.keras.Input([_INPUTS]),
      tf.keras.layers.Dense(width, activation='relu'),
      tf.keras.layers.Dense(_CLASSES),
    ]
  )


def _peak() -> float:
  """The largest memory of this process so far, in MiB."""
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == '__main__':
  main(sys.argv)
