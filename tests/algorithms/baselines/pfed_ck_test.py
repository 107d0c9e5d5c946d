import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_RATE = 0.2
_COHORTS = ([0, 1, 2, 3], [3, 4, 1, 5], [2, 0, 1, 3])


_build = functools.partial(
  linear_task.build_process,
  algorithms.build_pfed_ck,
  learning_rate=_RATE,
  num_clients=6,
)


def _clusters(updates, number):
  """Average linkage on `1 - cos`, one merge at a time; lists of rows."""
  groups = [[i] for i in range(len(updates))]
  while len(groups) > number:
    distances = {
      (a, b): np.mean(
        [
          1 - reference.cosine(updates[i], updates[j])
          for i, j in itertools.product(groups[a], groups[b])
        ]
      )
      for a, b in itertools.combinations(range(len(groups)), 2)
    }
    a, b = min(distances, key=distances.get)
    groups[a] = groups[a] + groups.pop(b)
  return groups


def _taught(student, teacher, data, knowledge, feature, temperature):
  """The loss of a model that another one teaches, which does not change."""
  (z, logits), (of_teacher, targets) = (
    reference.ENCODER.outputs(w, data.x) for w in (student, teacher)
  )
  q = tf.nn.softmax(targets / temperature)
  gap = tf.math.log(q) - tf.nn.log_softmax(logits / temperature)
  return (
    tf.reduce_mean(reference.focal_losses(logits, data.y))
    + knowledge * tf.reduce_mean(tf.reduce_sum(q * gap, axis=1))
    + feature * tf.reduce_mean((z - of_teacher) ** 2)
  )


def _pfed_ck(
  rounds,
  local_epochs,
  knowledge_weight,
  feature_weight,
  distillation_temperature,
  num_clusters,
):
  w = linear_task.start(linear_task.embedding_model_fn)
  models, shared = np.tile(w, (6, 1)), np.tile(w, (6, 1))
  teaching = knowledge_weight, feature_weight, distillation_temperature
  for clients in rounds:
    ids, before = list(clients), shared.copy()
    sizes = np.array([len(data.y) for data in clients.values()])
    losses = []
    for i, data in clients.items():
      of_epochs = []
      for _ in range(local_epochs):
        pair = shared[i], models[i]
        (shared[i], _, _), (models[i], _, personal) = (
          reference.descend(
            lambda v, t=teacher, d=data: _taught(v, t, d, *teaching),
            *(student, _RATE, 1),
          )
          for student, teacher in (pair, pair[::-1])
        )
        of_epochs.append(personal['loss'])
      losses.append(np.mean(of_epochs))
    w = reference.mean(shared[ids], sizes)
    cluster = np.full(6, -1)
    for group in _clusters((shared - before)[ids], num_clusters):
      members = np.array(ids)[group]
      shared[members] = reference.mean(shared[members], sizes[group])
      cluster[members] = min(members)
    yield {
      'weights': w,
      'table/model': models.copy(),
      'table/interaction': shared.copy(),
      'server/cluster': cluster,
      'aggregator/clients/cluster': cluster[ids],
      'aggregator/num_clusters': len(set(cluster) - {-1}),
      'client_work/personal_loss': np.average(losses, weights=sizes),
    }


def test_three_rounds():
  options = {
    'knowledge_weight': 2.0,
    'feature_weight': 0.3,
    'distillation_temperature': 3.0,
    'num_clusters': 3,
    'local_epochs': 3,
  }
  linear_task.assert_rounds(
    _build(linear_task.embedding_model_fn, **options),
    functools.partial(_pfed_ck, **options),
    linear_task.rounds(_COHORTS),
  )


def test_interaction_models_keep_the_client_s_statistics():
  process = _build(linear_task.embedding_behind_batch_norm_model_fn)
  (clients,) = linear_task.rounds([[0, 1, 2]])
  table = linear_task.run(process, clients, [clients]).state.client_work
  mean, _ = table['table']['interaction'].non_trainable
  for i, data in clients.items():
    linear_task.assert_close(mean[i], 0.5 * data.x.mean(axis=0), atol=2e-6)
  np.testing.assert_array_equal(mean[3], np.zeros(4))
