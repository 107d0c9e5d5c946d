"""Our methods return the same types and values on device and native runtime.

Of each kind of computation one: a mean of updates, rows of clients, what the
server sends besides weights, a server that ranks, clusters or searches, several
exchanges a round, personal models, random draws.
"""

import collections
from typing import Any

import numpy as np
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
sgd = tff.learning.optimizers.build_sgdm


def _with_ids():
  return [linear_task.client_data(i, data) for i, data in enumerate(CLIENTS)]


def _images():
  return [
    linear_task.client_data(i, linear_task.as_images(data))
    for i, data in enumerate(CLIENTS)
  ]


def _model_fn():
  """A model with an embedding."""
  return models.mlp_cffl_adult((NUM_FEATURES,), NUM_CLASSES)


_ALL = {'num_clients': len(CLIENTS)}
_VALIDATION = {'validation': (CLIENTS[0].holdout_x, CLIENTS[0].holdout_y)}
_ROWS = np.array([[0.1], [0.2], [np.nan]], np.float32)

# Name -> method, arguments, data.
_METHODS = {
  'fed_avg': ('fed_avg', {'local_epochs': 2}, equivalence.plain),
  'fedquad': ('fedquad', {}, equivalence.plain),
  'fed_rdn': (
    'fed_rdn',
    {
      **_ALL,
      'model_fn': linear_task.image_model_fn,
      'statistics': collections.OrderedDict(mean=_ROWS, std=_ROWS),
    },
    _images,
  ),
  **{
    name: (name.partition(' ')[0], _ALL | arguments, _with_ids)
    for name, arguments in {
      'fedaboost': {'local_epochs': 2},
      'ditto': {'client_optimizer': sgd(0.1, momentum=0.9)},
      'cffl': {**_VALIDATION, 'pretrain': True, 'upload_rate': 0.4},
      'corefed with alignment at clients': {'alignment': 'client'},
      'fed_mdfg': {},
      'fedakd': {'order': 'up_down'},
      'scaffold': {},
      'fed_sac': {**_VALIDATION, 'contributions': (0.3, 0.5, 0.9)},
      'pfed_ck': {'num_clusters': 2},
    }.items()
  },
}


def build(name: str) -> tuple[Any, Any]:
  """A process of a row of `_METHODS`, and its clients' data."""
  method, arguments, make_data = _METHODS[name]
  tf.keras.utils.set_random_seed(0)
  arguments = {
    'model_fn': _model_fn,
    'client_optimizer': sgd(0.1),
    'batch_size': 3,
    **arguments,
  }
  return getattr(algorithms, f'build_{method}')(**arguments), make_data()


@pytest.mark.parametrize('name', _METHODS)
def test_three_rounds(name, contexts):
  equivalence.assert_same_rounds(*build(name), contexts)


def test_class_centroids(contexts):
  computation = algorithms.build_class_centroids(_model_fn)
  weights = models.StatelessModel(_model_fn).initial_weights
  results = []
  for context in contexts:
    with tff.framework.get_context_stack().install(context):
      results.append(computation(weights, equivalence.plain()))
  equivalence.assert_equal(*results)
