"""Methods of each kind return the same on the device and the native runtime.

A sum, a second exchange in a round, a download and a table at the server, rows
that clients select, turns, and personal models. The other methods are made of
the same parts.
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
sgd = tff.learning.optimizers.build_sgdm


def _with_ids():
  return [linear_task.client_data(i, data) for i, data in enumerate(CLIENTS)]


def _model_fn():
  """A model with an embedding."""
  return models.mlp_cffl_adult((NUM_FEATURES,), NUM_CLASSES)


# Name -> method, arguments, data.
_METHODS = {
  'fed_avg': ({'local_epochs': 2}, equivalence.plain),
  'fedaboost': ({'local_epochs': 2}, _with_ids),
  'cffl': (
    {
      'validation': (CLIENTS[0].holdout_x, CLIENTS[0].holdout_y),
      'pretrain': True,
      'upload_rate': 0.4,
    },
    _with_ids,
  ),
  'corefed': ({'alignment': 'client'}, _with_ids),
  'fedakd': ({'order': 'up_down'}, _with_ids),
  'pfed_ck': ({'num_clusters': 2}, _with_ids),
}


def build(method: str) -> tuple[Any, Any]:
  """A process of a row of `_METHODS`, and its clients' data."""
  arguments, make_data = _METHODS[method]
  tf.keras.utils.set_random_seed(0)
  if make_data is _with_ids:
    arguments = {'num_clients': len(CLIENTS), **arguments}
  builder = getattr(algorithms, f'build_{method}')
  process = builder(
    _model_fn, client_optimizer=sgd(0.1), batch_size=3, **arguments
  )
  return process, make_data()


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
