"""Memory use stays constant when cohorts change."""

import gc

import numpy as np
import psutil
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tff_fair import algorithms

pytestmark = pytest.mark.full

# TensorFlow 2.14 itself loses some 50 bytes with every eager tensor on Python
# 3.11 (a loop of `x + 1` shows it), which makes a few MiB here. A graph or a
# state of the size of this table kept by mistake makes hundreds.
_MOST_MIB = 32


@pytest.mark.usefixtures('default_runtime')
def test_200_rounds_with_changing_cohorts():
  num_clients = 40
  rng = np.random.default_rng(0)
  sizes = rng.integers(1, 8, num_clients)  # A batch each.
  data = [
    linear_task.client_data(i, c)
    for i, c in enumerate(linear_task.make_clients(sizes))
  ]

  def model_fn():
    x = tf.keras.Input([linear_task.NUM_FEATURES])
    hidden = tf.keras.layers.Dense(2000, 'relu')(x)
    return tf.keras.Model(x, tf.keras.layers.Dense(3)(hidden))

  # Ditto's table holds a model for each client: 2.4 MiB.
  process = algorithms.build_ditto(
    model_fn,
    num_clients=num_clients,
    client_optimizer=linear_task.sgd(0.01),
    batch_size=8,
  )
  state = process.initialize()

  def run(rounds):
    nonlocal state
    for _ in range(rounds):
      # Mostly small ones, and until the end sizes that are new.
      size = min(rng.geometric(0.15), num_clients)
      cohort = rng.choice(num_clients, size, replace=False)
      state = process.next(state, [data[i] for i in cohort]).state
    gc.collect()
    return psutil.Process().memory_info().rss / 2**20

  before = run(50)
  after = run(200)
  assert after - before < _MOST_MIB
