"""What a process gives away, and what it says of itself."""

import pickle

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff
import tree

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


def _fedaboost():
  return algorithms.build_fedaboost(
    linear_task.batch_norm_model_fn,
    num_clients=len(_SIZES),
    client_optimizer=linear_task.sgd(0.25),
    boost_rate=0.5,
  )


@pytest.mark.usefixtures('default_runtime')
def test_processes_states_and_outputs_say_what_they_are():
  process = _fedaboost()
  title, *facts = repr(process).split('\n  ')
  assert title.startswith('fedaboost process: ') and '3 clients' in title
  assert {
    "aggregation: SammeAlphaFactory(fallback='keep')",
    'client_optimizer: SGD(learning_rate=0.25)',
    'local_epochs: 1',
    'boost_rate: 0.5',
  } <= {*facts}
  assert 'boost_rate' in process._repr_html_()
  clients = linear_task.make_clients(_SIZES)
  output = linear_task.run(process, clients, [[0, 1, 2]])
  state = 'State after round 1: '
  assert repr(output.state).startswith(state)
  assert repr(output.state).endswith('; weight, gamma of 3 clients')
  assert 'num_clients 3' in repr(output) and state in repr(output)
  assert '<th style="text-align: left">alpha</th>' in output._repr_html_()
  replaced = process.set_model_weights(
    output.state, process.get_model_weights(output.state)
  )
  assert repr(replaced) == repr(output.state)


@pytest.mark.usefixtures('default_runtime')
def test_states_are_still_those_of_tff():
  process = _fedaboost()
  signature = process.next.type_signature.result
  assert signature.python_container is (
    tff.learning.templates.LearningProcessOutput
  )
  state = process.initialize()
  plain = tff.learning.templates.LearningAlgorithmState(*state)
  tf.nest.assert_same_structure(state, plain)
  for changed in (
    tf.nest.map_structure(tf.identity, state),
    tree.map_structure(np.asarray, state),
    pickle.loads(pickle.dumps(tree.map_structure(np.asarray, state))),
    state._replace(finalizer=state.finalizer),
  ):
    assert isinstance(changed, tff.learning.templates.LearningAlgorithmState)
    assert repr(changed) == repr(state)
  # What somebody has made of it: TFF's text.
  for make in (lambda leaf: str(np.shape(leaf)), lambda leaf: np.stack([leaf])):
    made = tree.map_structure(make, state)
    assert repr(made).startswith('LearningAlgorithmState(global_model_weights=')
    assert made._repr_html_() is None
  assert repr(tree.map_structure(np.sum, state)).startswith('State after')

  @tff.federated_computation
  def in_another_computation():
    return process.initialize()

  assert type(in_another_computation()) is type(plain)
