"""A round of presets of all papers, on small files in the real formats."""

import json

import numpy as np
import pytest

from tests.launchers import digits_run
from tests.tasks import adult_file
from tests.tasks import emnist_file

pytestmark = pytest.mark.full


@pytest.fixture(scope='module', name='data_dir')
def _data_dir(tmp_path_factory):
  path = tmp_path_factory.mktemp('data')
  rng = np.random.default_rng(0)
  for name, shape, num_classes in (
    ('mnist', [28, 28], 10),
    ('cifar10', [32, 32, 3], 10),
    ('cifar100', [32, 32, 3], 100),
  ):
    arrays = {}
    for part, size in (('train', 60), ('test', 20)):
      arrays[f'x_{part}'] = rng.integers(0, 256, [size, *shape], np.uint8)
      arrays[f'y_{part}'] = np.arange(size) % num_classes
    np.savez(path / f'{name}.npz', **arrays)
  emnist_file.write(path / 'emnist_all.sqlite')
  with adult_file.numbers_of_records():
    adult_file.write(
      path, adult_file.lines(60, 60), adult_file.lines(20, 20, first_weight=500)
    )
    yield path


@pytest.mark.parametrize(
  ('preset', 'algorithm', 'others'),
  [
    # In one round on noise, no client may be better than chance.
    (
      'fedaboost_mnist_without_boosting',
      'fedaboost',
      {'fallback': 'fed_avg'},
    ),
    # AdamW, batch norm, dropout.
    ('fedaboost_femnist_2', 'fedaboost', {'fallback': 'fed_avg'}),
    ('fedaboost_femnist_2', 'ditto', {}),
    ('cffl_adult_size_p5', 'dssgd', {'num_examples': 40}),
    ('corefed_cifar', 'corefed', {}),  # Dropout.
    ('fedquad_cifar10_a05_c10', 'fedquad', {}),  # Batch norm in each role.
  ],
)
def test_presets_run(preset, algorithm, others, data_dir, tmp_path):
  digits_run.main(
    tmp_path,
    preset=preset,
    algorithm=algorithm,
    data_dir=data_dir,
    num_clients=4,
    rounds=1,
    local_epochs=1,
    **others,
  )
  summary = json.loads((tmp_path / 'summary.json').read_text())
  assert summary['algorithm'] == algorithm
  assert 0 <= summary['final']['global_accuracy'] <= 1
  assert summary['dropped']['num_rejected_clients'] == 0
