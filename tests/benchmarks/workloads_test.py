"""The workloads of the benchmark run, with little data."""

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import startup
from benchmarks import workloads
from tff_fair import models

pytestmark = pytest.mark.full

# Building large models takes most of the time.
_LARGE_MODELS = ('cnn_corefed', 'cnn_fedakd', 'cnn_fedquad')


@pytest.fixture(name='asked')
def _asked(monkeypatch, runtime_as_before):
  """What the workloads ask for; they get little data and a small model."""
  del runtime_as_before  # For later tests.
  asked = []
  examples = workloads._examples

  def few(num_clients, num_examples, shape):
    asked.append((num_clients, num_examples, shape))
    return examples(2, 20, shape)

  def small(name):
    def build():
      asked.append(name)
      x = tf.keras.Input([32, 32, 3])
      embedding = tf.keras.layers.Dense(3)(tf.keras.layers.Flatten()(x))
      logits = tf.keras.layers.Dense(10)(embedding)
      return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})

    return build

  monkeypatch.setattr(workloads, '_examples', few)
  for name in _LARGE_MODELS:
    monkeypatch.setattr(models, name, small(name))
  monkeypatch.setattr(workloads, '_TABLE_COLUMNS', 7)
  monkeypatch.setattr(workloads, '_REUSE_COHORT', 2)
  monkeypatch.setattr(workloads, '_STATE_FLOATS', 7)
  return asked


def _build(name, *implementations):
  setup = workloads.build_setup(implementations, {'device': {'device': 'cpu'}})
  return getattr(workloads, name.lower())(setup)


# Workload | implementations compared | and found | what it asks for.
_WORKLOADS = """
A | native stock device | native stock device | (10, 600, [784])
B | device | device | (20, 500, [32, 32, 3])
fedaboost | device | fed_avg fedaboost | (10, 600, [784])
cffl | device | fed_avg cffl cffl_sparse | (10, 600, [784]) (20, 600, [784]) (1, 6000, [784])
corefed_cnn | device | fed_avg corefed | (2, 500, [32, 32, 3]) cnn_corefed
corefed_mlp | device | fed_avg corefed | (2, 600, [28, 28, 1])
fedquad | device | fed_avg fedquad triplet_fl supcon_fl moon | (4, 256, [32, 32, 3]) cnn_fedquad
fedakd | device | fed_avg fedakd fedakd_all_data cgsv | (10, 320, [32, 32, 3]) cnn_fedakd
population | device | of_100 of_10000 | (10, 100, [64])
tiny | stock native device | native device | (10, 8, [4])
cffl_absent | stock device | device | (10, 600, [784]) (1, 600, [784])
"""  # noqa: E501


@pytest.mark.parametrize(
  'row', _WORKLOADS.strip().splitlines(), ids=lambda row: row.split()[0]
)
def test_every_workload_runs_its_implementations(row, asked):
  name, compared, found, wanted = row.split(' | ')
  implementations = _build(name, *compared.split())
  assert ' '.join(implementations) == found
  assert ' '.join(dict.fromkeys(map(str, asked))) == wanted
  for run_round in implementations.values():
    run_round()
    run_round()


def test_the_drawing_is_of_50_000_labels_and_new_each_time(asked):
  epoch, draw = _build('quadruplets', 'device').values()
  assert asked[0] == (1, 1024, [32, 32, 3]) and 'cnn_fedquad' in asked
  epoch()
  drawn = []
  for _ in range(2):
    draw()
    _, quadruplets = draw._state
    drawn.append(quadruplets.positive)
  assert drawn[0].shape == (50000,)
  # Among 500 of a class the same one is hardly ever drawn again.
  assert (drawn[0] != drawn[1]).mean() > 0.99
  # The labels, as the benchmark draws them.
  labels = np.random.default_rng(0).integers(100, size=50000, dtype=np.int32)
  assert (labels[drawn[0]] == labels).all()


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


def test_a_start_has_all_phases():
  phases = startup._time_start('stock', {})
  assert list(phases) == [
    'start Python', 'import TensorFlow', 'import TFF', 'import tff_fair',
    'create runtime', 'build process', 'first round', 'total',
  ]  # fmt: skip
  assert all(seconds > 0 for seconds in phases.values())
