"""The task 'ehr', on synthetic records and on small files."""

import functools

import numpy as np
import pytest

from tests import refusals
from tests.tasks import ehr_file
from tff_fair import tasks
from tff_fair.tasks import sources
from tff_fair.tasks.data_sets import ehr

# 20 records a state.
_TINY = 1e-6


@pytest.fixture(autouse=True)
def _no_data_dir(monkeypatch):
  monkeypatch.delenv(sources.DATA_DIR_VARIABLE, raising=False)


@pytest.fixture(name='tiny', scope='module')
def _tiny():
  with pytest.MonkeyPatch.context() as patch:
    patch.delenv(sources.DATA_DIR_VARIABLE, raising=False)
    return tasks.build_task('ehr', ehr_scale=_TINY, max_events=16)


def test_by_default(tmp_path):
  task = tasks.build_task('ehr', data_dir=tmp_path)
  assert (task.name, task.num_clients, task.num_classes) == ('ehr', 50, 2)
  # A fiftieth of 238,576 records, with at least 20 a state.
  assert task.data.x.shape == (4844, 129, 4)
  assert not task.has_server_test
  sizes = np.array([[len(part) for part in split] for split in task.splits])
  assert sizes[:, 1].sum() == 484
  shares = sizes.sum(axis=0) / sizes.sum()
  np.testing.assert_allclose(shares, [0.7, 0.1, 0.2], atol=2e-3)
  # California is the fifth state, Wyoming the last.
  assert sizes[4].sum() == 401
  assert sizes[49].sum() == 20


def test_the_parts_are_disjoint_and_all_there_is(tiny):
  assert len(tiny.data.y) == 1000
  for state, split in enumerate(tiny.splits):
    # Records are sorted by state.
    own = np.sort(np.concatenate(split))
    np.testing.assert_array_equal(own, 20 * state + np.arange(20))
    assert all((np.diff(part) > 0).all() for part in split)


def test_is_repeatable(tiny):
  same, other = (
    tasks.build_task('ehr', ehr_scale=_TINY, max_events=16, seed=seed)
    for seed in (0, 1)
  )
  np.testing.assert_array_equal(tiny.data.x, same.data.x)
  np.testing.assert_array_equal(tiny.splits[0].train, same.splits[0].train)
  assert not np.array_equal(tiny.splits[0].train, other.splits[0].train)
  assert not np.array_equal(tiny.data.x, other.data.x)


def _owners(*sizes):
  return np.repeat(np.arange(len(sizes)), sizes)


def test_sizes_of_a_split_by_hand():
  parts = ehr.split(_owners(45, 45, 10), seed=0)
  sizes = [[len(part) for part in split] for split in parts]
  assert sum(held_out for _, held_out, _ in sizes) == 10
  for (train, held_out, test), total in zip(sizes, (45, 45, 10), strict=True):
    rest = total - held_out
    assert test == int(rest * 2 / 9 + 0.5)
    assert train == rest - test


def test_the_held_out_are_drawn_over_all_states_together():
  held_out = [
    len(ehr.split(_owners(50, 50), seed=seed)[0].holdout) for seed in range(20)
  ]
  # A draw in each state would always have 5.
  assert len(set(held_out)) > 3
  assert 3.5 < np.mean(held_out) < 6.5


def test_each_state_keeps_a_record_to_train():
  for seed in range(20):
    parts = ehr.split(
      _owners(1, 8, 1), seed=seed, holdout_fraction=0.5, test_fraction=0.45
    )
    assert [len(part.holdout) for part in parts][0::2] == [0, 0]
    assert all(len(part.train) for part in parts)
    assert sum(len(part.holdout) for part in parts) == 5


def test_the_model_fits_the_data(tiny):
  assert tiny.data.x.shape == (1000, 17, 4)
  lengths = tiny.data.x[:, 0, 2]
  assert (lengths.min(), lengths.max()) == (5, 16)
  outputs = tiny.model_fn()(tiny.examples(4).train.x[:2])
  assert outputs['logits'].shape == (2, 2)
  assert outputs['embedding'].shape == (2, 536)


def test_reads_files(tmp_path):
  ehr_file.write(tmp_path, ['NY', 'AK', 'CA'])
  task = tasks.build_task('ehr', data_dir=tmp_path, num_clients=3)
  assert task.num_clients == 3
  assert np.bincount(task.data.y).tolist() == [60, 30]
  assert sum(len(split.holdout) for split in task.splits) == 9
  assert task.data.x.shape == (90, 129, 4)
  assert (task.data.x[:, 0, 2] == 2).all()


def test_only_training_records_make_the_vocabulary_and_the_numbers(tmp_path):
  ehr_file.write(tmp_path, ['AK', 'AL'])
  plain = tasks.build_task('ehr', data_dir=tmp_path)
  training = np.concatenate([split.train for split in plain.splits])
  others = np.setdiff1d(np.arange(60), training)
  ages, values = plain.data.x[training, 1:3, 1], plain.data.x[training, 1, 2]
  for numbers in (ages, values):
    np.testing.assert_allclose(numbers.mean(), 0, atol=1e-6)
    np.testing.assert_allclose(numbers.std(), 1, rtol=1e-6)
  # Records are sorted by state and patient.
  names = [f'{state}{i:03d}' for state in ('AK', 'AL') for i in range(30)]
  extra = [f'{names[i]},1,RARE,1000' for i in others]
  ehr_file.write(tmp_path, ['AK', 'AL'], extra_events=extra)
  changed = tasks.build_task('ehr', data_dir=tmp_path)
  for ours, theirs in zip(plain.splits, changed.splits, strict=True):
    np.testing.assert_array_equal(ours.train, theirs.train)
  np.testing.assert_array_equal(
    changed.data.x[training], plain.data.x[training]
  )
  # Padding and unknown, X and Y.
  assert changed.model_fn.keywords['vocabulary_size'] == 4
  assert (changed.data.x[others, 1, 0] == 1).all()
  assert changed.data.x[others, 1, 2].min() > 10
  np.testing.assert_array_equal(
    changed.data.x[others, 2:4], plain.data.x[others, 1:3]
  )


def test_states_without_records_are_no_clients(tmp_path):
  ehr_file.write(tmp_path, ['AK', 'CA'])
  with (tmp_path / 'patients.csv').open('a') as patients:
    patients.write('z,AL,F,1\ny,WY,F,1\n')
  with (tmp_path / 'events.csv').open('a') as events:
    events.write('z,50,C25.9,\n')
  with pytest.warns(UserWarning, match=r'^2 of 4 states .* clients: AL, WY\.$'):
    task = tasks.build_task('ehr', data_dir=tmp_path)
  assert task.num_clients == 2


def test_is_synthetic_without_files(tmp_path, monkeypatch):
  assert tasks.is_synthetic('ehr', None)
  assert tasks.is_synthetic('ehr', tmp_path)
  ehr_file.write(tmp_path, ['AK', 'AL'])
  assert not tasks.is_synthetic('ehr', tmp_path)
  monkeypatch.setenv(sources.DATA_DIR_VARIABLE, str(tmp_path))
  assert not tasks.is_synthetic('ehr')


def test_refuses_files(tmp_path):
  for name in ('patients.csv', 'events.csv'):
    (tmp_path / name).write_text('')
    message = rf"^The data files .* found only '{tmp_path / name}'\.$"
    row = {'data_dir': tmp_path}, tasks.DataNotFoundError, message
    for call in (tasks.is_synthetic, tasks.build_task):
      refusals.check(functools.partial(call, 'ehr'), [row])
    (tmp_path / name).unlink()
  for states in ([], ['AK']):
    ehr_file.write(tmp_path, states)
    with pytest.raises(
      tasks.DataDamagedError, match=f'two states .* those of {len(states)}'
    ):
      tasks.build_task('ehr', data_dir=tmp_path)


def test_refuses_options(tmp_path):
  ehr_file.write(tmp_path, ['AK', 'AL'])
  for options, message in [
    ({'data_dir': tmp_path, 'ehr_scale': 0.5}, '^ehr_scale must not be set'),
    ({'ehr_scale': _TINY, 'num_clients': 49}, '^num_clients must be .* 50, f'),
    (
      {'ehr_scale': _TINY, 'test_fraction': 0.6, 'holdout_fraction': 0.4},
      r'must be below 1, found 0\.6 \+ 0\.4',
    ),
  ]:
    with pytest.raises(ValueError, match=message):
      tasks.build_task('ehr', **options)
