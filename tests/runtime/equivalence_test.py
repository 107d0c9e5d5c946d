"""Methods of each kind return the same on the device and the native runtime.

A sum, and sums after an exchange of a maximum and of all losses in the same
round, a download and a table at the server, rows that clients select, and
personal models. The other methods are made of the
same parts.
"""

from typing import Any

import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.runtime import equivalence
from tff_fair import algorithms
from tff_fair import models

pytestmark = pytest.mark.full

NUM_FEATURES, NUM_CLASSES = linear_task.NUM_FEATURES, linear_task.NUM_CLASSES
CLIENTS = equivalence.CLIENTS


def _model_fn():
  """A model with an embedding."""
  return models.mlp_cffl_adult((NUM_FEATURES,), NUM_CLASSES)


# Method -> arguments.
_METHODS = {
  'fedaboost': {'local_epochs': 2},
  'cffl': {
    'validation': (CLIENTS[0].holdout_x, CLIENTS[0].holdout_y),
    'pretrain': True,
    'upload_rate': 0.4,
  },
  'corefed': {'alignment': 'client'},
  'pfed_ck': {'num_clusters': 2},
  'term': {'tilt': 2.0},
  'gifair_fl': {'spread_share': 0.9, 'groups': (0, 1, 0)},
}


def build(method: str) -> tuple[Any, Any]:
  """A process of a row of `_METHODS`, and its clients' data."""
  tf.keras.utils.set_random_seed(0)
  process = getattr(algorithms, f'build_{method}')(
    _model_fn,
    num_clients=len(CLIENTS),
    client_optimizer=tff.learning.optimizers.build_sgdm(0.1),
    batch_size=3,
    **_METHODS[method],
  )
  return process, [linear_task.client_data(i, c) for i, c in enumerate(CLIENTS)]


@pytest.mark.parametrize('name', _METHODS)
def test_two_rounds(name, contexts):
  equivalence.assert_same_rounds(*build(name), contexts)


def test_class_centroids(contexts):
  computation = algorithms.build_class_centroids(_model_fn)
  weights = models.StatelessModel(_model_fn).initial_weights
  results = []
  for context in contexts:
    with tff.framework.get_context_stack().install(context):
      results.append(computation(weights, equivalence.plain()))
  equivalence.assert_equal(*results)
