"""References to clients of tasks, and what another process makes of them."""

import dataclasses
import pickle
import shutil

import numpy as np
import pytest

from tests.tasks import adult_file
from tff_fair import tasks
from tff_fair.tasks import registry
from tff_fair.tasks import sources

_SHIFT = {'partition': 'covariate_shift', 'num_examples': 400, 'pca_dim': 4}


def _elsewhere(reference):
  """The reference as it arrives in another process, which has built nothing."""
  registry._build_once.cache_clear()
  data = pickle.dumps(reference)
  assert len(data) < 1200  # Settings, no examples.
  return pickle.loads(data)


def _arrays(data):
  return [
    array
    for part in data.values()
    for element in part.as_numpy_iterator()
    for array in (element.values() if isinstance(element, dict) else [element])
  ]


def _assert_same(task, client_ids):
  for client_id in client_ids:
    reference = task.client_reference(client_id)
    found = _elsewhere(reference)()
    expected = task.client_data(client_id)
    assert reference() is expected and found is not expected
    arrays = zip(_arrays(found), _arrays(expected), strict=True)
    for one, other in arrays:
      assert one.dtype == other.dtype
      np.testing.assert_array_equal(one, other)


def test_another_process_has_the_same_clients(monkeypatch, tmp_path):
  monkeypatch.delenv(sources.DATA_DIR_VARIABLE, raising=False)
  _assert_same(tasks.build_task('ehr', ehr_scale=1e-6, max_events=8), [0, 49])
  monkeypatch.setenv(sources.DATA_DIR_VARIABLE, str(tmp_path))
  for options in (
    {},
    {'partition': 'class', 'random_classes': True, 'data_fraction': 0.5},
    {'split': 'server', 'partition': 'power_law', 'free_riders': 2},
    {**_SHIFT, 'shift_weights': 'ratio', 'shift_sizes': 'zipf'},
    {**_SHIFT, 'shift_method': 'pc1_sort', 'pca_dim': None},
  ):
    task = tasks.build_task('digits', num_clients=4, seed=3, **options)
    _assert_same(task, [0, task.num_clients - 1])


def test_clients_of_a_round_share_what_is_built():
  task = tasks.build_task('digits', num_clients=3)
  first, second = (task.client_reference(i) for i in (0, np.int32(1)))
  assert first.load is second.load
  assert [type(r.client_id) for r in (first, second)] == [int, int]
  assert first.num_examples == task.num_train(0)
  first, second = map(_elsewhere, (first, second))
  first(), second(), first()
  info = registry._build_once.cache_info()
  assert (info.misses, info.currsize) == (1, 1)
  riders = task.with_free_riders(1)
  assert riders.client_reference(3).num_examples == 1


def test_the_data_folder_is_that_of_the_first_process(monkeypatch, tmp_path):
  monkeypatch.chdir(tmp_path.parent)
  monkeypatch.setenv(sources.DATA_DIR_VARIABLE, tmp_path.name)
  with adult_file.numbers_of_records():
    adult_file.write(
      tmp_path, adult_file.lines(20, 20), adult_file.lines(10, 10)
    )
    task = tasks.build_task('adult', num_clients=2, partition='equal')
    monkeypatch.chdir('/')
    monkeypatch.delenv(sources.DATA_DIR_VARIABLE)
    _assert_same(task, [1])
  shutil.rmtree(tmp_path)
  with pytest.raises(tasks.DataNotFoundError, match='must exist, found no su'):
    _elsewhere(task.client_reference(0))()


def test_another_process_has_the_groups_of_people(tmp_path):
  path = tmp_path / 'table.csv'
  rows = [f'{i % 2},{i},{"wm"[i % 3 > 0]},{i % 4 > 1}' for i in range(40)]
  path.write_text('\n'.join(['client,age,sex,label', *rows]))
  task = tasks.build_task(
    'table',
    data_file=str(path),
    client_column='client',
    label_column='label',
    sensitive_columns='sex',
  )
  plain = [len(_arrays(task.client_data(i))) for i in (0, 1)]
  task = task.with_groups()
  _assert_same(task, [0, 1])
  for i, number in enumerate(plain):
    found = next(task.client_data(i)['train'].as_numpy_iterator())
    ages = task.data.x[task.splits[i].train]
    assert len(_arrays(task.client_data(i))) == number + 2
    np.testing.assert_array_equal(found['x'], ages)
    codes = task.sensitive[0].codes[task.splits[i].train]
    np.testing.assert_array_equal(found['group'], codes)


def test_other_data_in_the_other_process_are_refused(monkeypatch):
  # Clients of the same sizes: only who has which example differs.
  task, other = (
    tasks.build_task('digits', num_clients=3, partition='equal', seed=seed)
    for seed in (0, 1)
  )
  reference = _elsewhere(task.client_reference(0))
  monkeypatch.setattr(registry, 'build_task', lambda *_, **__: other)
  with pytest.raises(tasks.DataDiffersError, match='same in all processes'):
    reference()
  with pytest.raises(TypeError, match='^A task must be built by tasks.build_t'):
    pickle.dumps(dataclasses.replace(task, rebuild=None).client_reference(0))


def test_errors_arrive_from_another_process():
  for error in (
    tasks.DataDamagedError('a/b', 'labels', 'none.\n'),
    tasks.DataDiffersError('x'),
    tasks.DataNotFoundError('y'),
  ):
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), str(found)) == (type(error), str(error))
