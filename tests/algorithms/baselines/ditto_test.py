import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12, 7)
_COHORTS = ([0, 1, 2], [2, 0], [1, 2])


def _build(**options):
  options = {
    'num_clients': len(_SIZES),
    'client_optimizer': linear_task.sgd(0.1),
    'personal_optimizer': linear_task.sgd(0.2),
    'local_epochs': 2,
    'batch_size': 50,
    'proximal_weight': 0.5,
    **options,
  }
  return algorithms.build_ditto(linear_task.model_fn, **options)


@pytest.mark.parametrize('proximal_weight', [0.5, 0.0])
def test_three_rounds_against_numpy(proximal_weight):
  clients = linear_task.make_clients(_SIZES)
  process = _build(proximal_weight=proximal_weight)
  state = linear_task.run(process, clients, _COHORTS).state
  model = linear_task.initial_model()
  personal = [model] * len(_SIZES)
  for cohort in _COHORTS:
    for i in cohort:
      personal[i] = numpy_reference.train(
        personal[i],
        clients[i],
        learning_rate=0.2,
        epochs=2,
        pull=(model, proximal_weight),
      )
    model = numpy_reference.fed_avg_round(
      model, [clients[i] for i in cohort], learning_rate=0.1, epochs=2
    )
  linear_task.assert_model(process.get_model_weights(state), model)
  for i, expected in enumerate(personal):
    found = process.get_client_model_weights(state, i)
    linear_task.assert_model(found, expected)
  # Client 3 never took part.
  linear_task.assert_model(
    process.get_client_model_weights(state, 3), linear_task.initial_model()
  )


def test_table_holds_all_client_models():
  process = _build()
  state = linear_task.run(
    process, linear_task.make_clients(_SIZES), _COHORTS
  ).state
  table = process.client_model_table(state)
  assert table.trainable[0].shape == (4, 4, 3)
  one = process.get_client_model_weights(state, 2)
  np.testing.assert_array_equal(table.trainable[0][2], one.trainable[0])


def test_a_rejected_client_keeps_its_model():
  clients = linear_task.make_clients(_SIZES)
  clients[1].x[0, 0] = np.inf
  process = _build()
  output = linear_task.run(process, clients, [[0, 1]])
  assert output.metrics['client_work']['num_rejected_clients'] == 1
  linear_task.assert_model(
    process.get_client_model_weights(output.state, 1),
    linear_task.initial_model(),
  )


def test_personal_batch_norm_statistics_stay_with_the_client():
  clients = linear_task.make_clients((8, 8))
  process = algorithms.build_ditto(
    linear_task.batch_norm_model_fn,
    num_clients=2,
    client_optimizer=linear_task.sgd(0.1),
    batch_size=50,
  )
  state = linear_task.run(process, clients, [[0, 1]]).state
  for i, data in enumerate(clients):
    mean, _ = process.get_client_model_weights(state, i).non_trainable
    np.testing.assert_allclose(mean, data.x.mean(axis=0) / 2, rtol=1e-4)


def test_negative_proximal_weight_is_refused():
  with pytest.raises(
    ValueError, match='proximal_weight must be at least 0.0, found -0.1'
  ):
    _build(proximal_weight=-0.1)


def test_the_divergence_is_that_of_the_personal_models():
  process = _build()
  clients = linear_task.make_clients(_SIZES)
  data = [linear_task.client_data(i, clients[i]) for i in (0, 2)]
  before = process.initialize()
  for _ in range(2):
    after = process.next(before, data).state
    found = process.divergence(before, after, data)
    own = process.client_model_table(after).trainable
    everyones = process.get_model_weights(after).trainable
    distances = [
      sum(np.abs(o[i] - e).sum() for o, e in zip(own, everyones, strict=True))
      for i in (0, 2)
    ]
    assert found['parameters_d_manhattan'] == pytest.approx(
      np.mean(distances), rel=1e-5
    )
    before = after
