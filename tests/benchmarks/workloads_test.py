"""The workloads of the benchmark run, with little data."""

import json

import pytest
import tensorflow as tf

from benchmarks import peer
from benchmarks import startup_once
from benchmarks import workloads
from tff_fair import models

pytestmark = pytest.mark.full

# Building a large model takes most of the time.
_LARGE_MODEL = 'cnn_fedquad'


@pytest.fixture(name='asked')
def _asked(monkeypatch, runtime_as_before):
  """Collects the workloads' requests, with little data and a small model."""
  del runtime_as_before  # For later tests.
  asked = []
  examples = workloads._examples

  def few(num_clients, num_examples, shape):
    asked.append((num_clients, num_examples, shape))
    return examples(2, 20, shape)

  def small():
    asked.append(_LARGE_MODEL)
    x = tf.keras.Input([32, 32, 3])
    embedding = tf.keras.layers.Dense(3)(tf.keras.layers.Flatten()(x))
    logits = tf.keras.layers.Dense(10)(embedding)
    return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})

  monkeypatch.setattr(workloads, '_examples', few)
  monkeypatch.setattr(models, _LARGE_MODEL, small)
  monkeypatch.setattr(workloads, '_TABLE_COLUMNS', 7)
  monkeypatch.setattr(workloads, '_REUSE_COHORT', 2)
  monkeypatch.setattr(workloads, '_MANY_COHORT', 2)
  monkeypatch.setattr(workloads, '_PFL_COHORT', 2)
  monkeypatch.setattr(workloads, '_STATE_FLOATS', 7)
  return asked


def _build(name, *implementations):
  setup = workloads.build_setup(implementations, {'device': {'device': 'cpu'}})
  return getattr(workloads, name.lower())(setup)


# Workload | implementations compared | and found | what it asks for.
_WORKLOADS = """
A | native stock device | native stock device | (10, 600, [784])
cross_device | stock device | stock device made_anew fedaboost scaffold | (3000, 20, [784])
pfl_cifar10 | device | device | (1000, 50, [32, 32, 3])
blazefl | stock device | stock device | (100, 500, [32, 32, 3])
cffl | device | fed_avg cffl cffl_sparse | (10, 600, [784]) (20, 600, [784]) (1, 6000, [784])
corefed_mlp | device | fed_avg corefed | (2, 600, [28, 28, 1])
fedquad | device | fed_avg fedquad triplet_fl supcon_fl moon | (4, 256, [32, 32, 3]) cnn_fedquad
population | device | of_100 of_10000 | (10, 100, [64])
tiny | stock native device | native device | (10, 8, [4])
"""  # noqa: E501


@pytest.mark.parametrize(
  'row', _WORKLOADS.strip().splitlines(), ids=lambda row: row.split()[0]
)
def test_workloads_run_their_implementations(row, asked):
  name, compared, found, wanted = row.split(' | ')
  implementations = _build(name, *compared.split())
  assert ' '.join(implementations) == found
  assert ' '.join(dict.fromkeys(map(str, asked))) == wanted
  for run_round in implementations.values():
    run_round()


def test_peers_get_the_same_examples(monkeypatch, asked):
  made = []
  monkeypatch.setattr(peer, 'Peer', lambda *given: made.append(given))
  implementations = _build('pfl_cifar10', 'flower', 'native', 'pfl', 'device')
  assert list(implementations) == ['flower', 'native', 'pfl', 'device']
  ((x, _), (_, y)) = workloads._examples(2, 20, [32, 32, 3])
  for script, arrays, arguments in made:
    assert script in ('flower_rounds.py', 'pfl_rounds.py')
    assert (arrays['x'][0] == x).all() and (arrays['y'][1] == y).all()
    assert arguments == ('pfl_cifar10', 2, 1, 10, 0.1)
  assert len(made) == 2


def test_published_models_have_the_number_of_weights_that_is_published():
  assert workloads._cnn_pfl().count_params() == 1_626_442
  assert workloads._cnn_blazefl().count_params() == 62_006


def test_the_table_counts_how_often_each_client_took_part(asked):
  implementations = _build('table', 'native', 'stock', 'device')
  assert list(implementations) == ['stock', 'device']
  tables = {}
  for name, run_round in implementations.items():
    for _ in range(3):
      run_round()
    tables[name] = run_round._state
  assert tables['device'].shape == (100, 7)
  assert tables['device'].sum() == 3 * 20 * 7
  assert (tables['device'] == tables['stock']).all()


def test_a_state_is_what_comes_back_and_data_are_summed(asked):
  for round_once in _build('state', 'native', 'device').values():
    for _ in range(2):
      round_once()
    assert round_once._state.tolist() == [1] * 7
  assert not asked
  stock, device = _build('data', 'stock', 'device').values()
  stock(), device()
  assert asked == [(10, 3000, [784])]
  assert stock._state == pytest.approx(device._state, rel=1e-3)
  assert stock._state != 0


def test_a_start_has_all_phases(asked, capsys):
  startup_once.main(['start', json.dumps(['device', {}])])
  ends = json.loads(capsys.readouterr().out)
  assert list(ends) == [
    'start Python', 'import TensorFlow', 'import TFF', 'import tff_fair',
    'create runtime', 'build process', 'first round',
  ]  # fmt: skip
  assert list(ends.values()) == sorted(ends.values())
