"""The models that a process gives away score what the run says."""

import numpy as np
import pytest

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import metrics

pytestmark = pytest.mark.full

_SIZES = (8, 12, 10)


@pytest.mark.usefixtures('default_runtime')
def test_keras_models_are_those_that_are_evaluated():
  """Those of Ditto, with batch-norm statistics of their own."""
  process = algorithms.build_ditto(
    linear_task.batch_norm_model_fn,
    num_clients=len(_SIZES),
    client_optimizer=linear_task.sgd(0.3),
    personal_optimizer=linear_task.sgd(0.5),
    batch_size=4,
  )
  clients = linear_task.make_clients(_SIZES)
  state = linear_task.run(process, clients, [[0, 1, 2]] * 2).state
  evaluator = metrics.Evaluator(
    linear_task.batch_norm_model_fn(), [(c.x, c.y) for c in clients]
  )
  expected = (
    evaluator.evaluate_global(process.get_model_weights(state)),
    evaluator.evaluate_clients(process.client_model_table(state)),
  )
  for i, client in enumerate(clients):
    models = (process.to_keras(state), process.to_keras(state, i))
    for model, scores in zip(models, expected, strict=True):
      logits = model.predict(client.x, verbose=0)
      accuracy = np.mean(logits.argmax(axis=1) == client.y)
      assert accuracy == pytest.approx(scores.accuracy[i])
  assert not np.allclose(*(scores.loss for scores in expected))
  for client_id, error in ((3, ValueError), (-1, ValueError), ('a', TypeError)):
    with pytest.raises(error, match='client_id must be'):
      process.to_keras(state, client_id)
