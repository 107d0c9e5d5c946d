"""The task 'adult', on small files and, where they are, on the real ones."""

import hashlib

import numpy as np
import pytest

from tests.tasks import adult_file
from tff_fair import tasks
from tff_fair.tasks import sources
from tff_fair.tasks.data_sets import adult

# 30 records above 50,000 dollars and 50 others.
_DATA_LINES = adult_file.lines(20, 30)
_TEST_LINES = adult_file.lines(10, 20, first_weight=50)
_WEIGHT = 103


@pytest.fixture(name='folder')
def _folder(home, tmp_path):
  """An empty folder; files in it may have any number of records."""
  del home
  with adult_file.numbers_of_records():
    yield tmp_path


@pytest.fixture(name='data_dir')
def _data_dir(folder):
  adult_file.write(folder, _DATA_LINES, _TEST_LINES)
  return folder


def _positions(task):
  return [np.concatenate(split) for split in task.splits]


def test_by_default(data_dir):
  task = tasks.build_task('adult', data_dir=data_dir)
  assert (task.name, task.num_clients, task.num_classes) == ('adult', 5, 2)
  assert task.data.x.shape == (60, 108)
  assert np.bincount(task.data.y).tolist() == [30, 30]
  sizes = [len(positions) for positions in _positions(task)]
  # 60 / 3000 of 71, 335, 600, 865, 1129.
  assert sizes == [1, 7, 12, 17, 23]
  assert not task.has_server_test
  # A fifth of each, rounded: .2, 1.4, 2.4, 3.4 and 4.6.
  assert [len(split.test) for split in task.splits] == [0, 1, 2, 3, 5]


def test_groups_of_people(data_dir):
  plain = tasks.build_task('adult', data_dir=data_dir)
  kept = tasks.build_task('adult', data_dir=data_dir, sensitive_columns='sex')
  np.testing.assert_array_equal(plain.data.x, kept.data.x)
  (groups,) = kept.sensitive
  assert (groups.column, groups.names) == ('sex', ('Female', 'Male'))
  # The features of the sex, behind those of the other columns.
  np.testing.assert_array_equal(groups.codes, kept.data.x[:, 59])
  assert kept.data.x[:, 58:60].sum(axis=1).tolist() == [1] * 60
  assert kept.class_names[kept.positive_class] == '>50K'
  dropped = tasks.build_task(
    'adult',
    data_dir=data_dir,
    sensitive_columns='sex',
    drop_sensitive=True,
    positive_label='<=50K',
  )
  np.testing.assert_array_equal(
    dropped.data.x, np.delete(plain.data.x, [58, 59], axis=1)
  )
  np.testing.assert_array_equal(dropped.sensitive[0].codes, groups.codes)
  assert dropped.positive_class == 0


def test_refuses_what_are_no_groups(data_dir):
  for columns, message in (
    ('sexx', 'Did you mean sex'),
    ('age', 'continuous'),
    ('class', 'column of the labels'),
  ):
    with pytest.raises(ValueError, match=message):
      tasks.check_task('adult', sensitive_columns=columns)
  with pytest.raises(ValueError, match="found only 'White'"):
    tasks.build_task('adult', data_dir=data_dir, sensitive_columns='race')


def test_pools_all_above_with_random_others(data_dir):
  def weights(task, label):
    # The weight is the number of the record, standardised.
    values = task.data.x[task.data.y == label, _WEIGHT]
    return set(np.round(values, 5))

  first, second = (
    tasks.build_task('adult', data_dir=data_dir, seed=seed, test_fraction=0.0)
    for seed in (0, 1)
  )
  assert len(weights(first, 1)) == len(weights(first, 0)) == 30
  counts = [np.bincount(task.data.y).tolist() for task in (first, second)]
  assert counts == [[30, 30], [30, 30]]
  assert not np.array_equal(first.data.x[:, :102], second.data.x[:, :102])


def test_the_server_keeps_a_fifth_to_test(data_dir):
  task = tasks.build_task(
    'adult', data_dir=data_dir, split='server', num_examples=30
  )
  # A fifth of 60, a tenth of the other 48 (4.8), and the rest.
  assert [len(part) for part in task.server] == [43, 5, 12]
  dealt = np.concatenate(_positions(task))
  assert len(dealt) == 30
  assert set(dealt) <= set(task.server.to_deal)
  assert len(np.unique(np.concatenate(task.server))) == 60


def _training(task):
  if task.has_server_test:
    positions = [task.server.to_deal, task.server.validation]
  else:
    positions = [
      part for split in task.splits for part in (split.train, split.holdout)
    ]
  return np.sort(np.concatenate(positions))


def test_only_training_records_standardise(folder):
  for arguments in ({'num_examples': 40}, {'split': 'server'}):
    _check_standardised(folder, arguments)


def _check_standardised(folder, arguments):
  def build(lines):
    adult_file.write(folder, lines[:60], lines[60:])
    return tasks.build_task('adult', data_dir=folder, **arguments)

  # Equally many of both classes: record i of the files is example i.
  lines = adult_file.lines(40, 40)
  plain = build(lines)
  training = _training(plain)
  numbers = plain.data.x[training, 102:]
  varying = [0, 1]  # Age and weight; all others are constant.
  np.testing.assert_allclose(numbers[:, varying].mean(axis=0), 0, atol=1e-5)
  np.testing.assert_allclose(numbers[:, varying].std(axis=0), 1, rtol=1e-5)
  assert not numbers[:, 2:].any()

  others = np.setdiff1d(np.arange(80), training)
  assert len(others) >= 12
  for i in others:
    label = lines[i].rpartition(', ')[-1]
    lines[i] = adult_file.line(label, age=10**6, hours_per_week=99)
  distant = build(lines)
  np.testing.assert_array_equal(_training(distant), training)
  np.testing.assert_array_equal(
    distant.data.x[training], plain.data.x[training]
  )
  assert distant.data.x[others, 102].min() > 1e4
  # The hours do not vary among the training records.
  assert not distant.data.x[others, 107].any()


def test_refuses_files_that_cannot_be_balanced(folder):
  for num_above, num_others in [(5, 4), (0, 4)]:
    lines = adult_file.lines(num_above, num_others)
    adult_file.write(folder, lines[:-1], lines[-1:])
    message = f'as many others, found {num_above} and {num_others}'
    with pytest.raises(tasks.DataDamagedError, match=message):
      tasks.build_task('adult', data_dir=folder)


_HAVE_REAL_FILES = all(
  sources.find_file(name, None) for name in ('adult.data', 'adult.test')
)


@pytest.mark.full
@pytest.mark.skipif(
  not _HAVE_REAL_FILES,
  reason=f'{sources.DATA_DIR_VARIABLE} holds no UCI Adult',
)
class TestRealFiles:
  def test_the_checksum_is_that_of_the_published_file(self):
    """This copy of adult.data lacks the empty line at the end."""
    for name, sha256 in adult._SHA256.items():
      content = sources.find_file(name, None).read_bytes().rstrip(b'\n')
      found = hashlib.sha256(content + b'\n\n').hexdigest()
      assert found == sha256, name

  def test_all_records_above_and_as_many_others(self):
    task = tasks.build_task('adult')
    assert task.data.x.shape == (23374, 108)
    assert np.bincount(task.data.y).tolist() == [11687, 11687]
    # Each record has one value of each of the eight columns.
    categories = task.data.x[:, :102]
    assert (categories.sum(axis=1) == 8).all()
    assert set(np.unique(categories)) == {0.0, 1.0}
    training = task.data.x[_training(task), 102:].astype(np.float64)
    np.testing.assert_allclose(training.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(training.std(axis=0), 1, rtol=1e-5)
    assert task.num_clients == 5

  def test_the_experiment_of_cffl(self):
    task = tasks.build_task('adult', split='server', num_examples=4000)
    # A fifth of 23,374, a tenth of the other 18,699, and the rest.
    assert [len(part) for part in task.server] == [16829, 1870, 4675]
    sizes = [task.num_train(i) for i in range(5)]
    assert sum(sizes) == 4000
    assert sizes == sorted(sizes)
    assert abs(task.validation.y.mean() - 0.5) < 0.05
    together = np.concatenate([*_positions(task), *task.server[1:]])
    assert len(np.unique(together)) == len(together)
