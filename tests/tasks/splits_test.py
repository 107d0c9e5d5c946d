import numpy as np
import pytest

from tasks import splits


@pytest.mark.parametrize(
  ('num_examples', 'expected'),
  [
    (0, (0, 0, 0)),
    (1, (1, 0, 0)),  # Holding out the last example would end training.
    (2, (1, 1, 0)),  # test .4 -> 0; holdout .2 -> 0, at least 1.
    (3, (1, 1, 1)),  # test .6 -> 1; holdout .2 -> 1.
    (6, (4, 1, 1)),  # test 1.2 -> 1; holdout .5 -> 1.
    (100, (72, 8, 20)),
    (103, (74, 8, 21)),  # test 20.6 -> 21; holdout 8.2 -> 8.
    (1393, (1003, 111, 279)),  # test 278.6; holdout 111.4.
  ],
)
def test_split_sizes_by_hand(num_examples, expected):
  assert splits.split_sizes(num_examples) == expected


@pytest.mark.parametrize(
  ('num_examples', 'test', 'holdout', 'expected'),
  [
    (50, 0.29, 0.0, (35, 0, 15)),  # 14.499999999999998 on a computer.
    (10, 0.0, 0.0, (10, 0, 0)),
    (10, 0.0, 0.1, (9, 1, 0)),
    (2, 0.9, 0.9, (1, 0, 1)),
    (3, 0.5, 0.9, (1, 0, 2)),  # Holdout gives way to training.
    (8, 1 / 7, 0.5, (3, 4, 1)),
  ],
)
def test_split_sizes_of_other_fractions(num_examples, test, holdout, expected):
  assert (
    splits.split_sizes(
      num_examples, test_fraction=test, holdout_fraction=holdout
    )
    == expected
  )


def test_training_keeps_an_example_whatever_the_fractions():
  for num_examples in range(1, 40):
    for test in (0.0, 0.2, 0.5, 0.99):
      for holdout in (0.0, 0.1, 0.5, 0.99):
        sizes = splits.split_sizes(
          num_examples, test_fraction=test, holdout_fraction=holdout
        )
        assert sum(sizes) == num_examples
        assert sizes[0] >= 1
        assert min(sizes) >= 0


@pytest.mark.parametrize(
  ('arguments', 'error', 'message'),
  [
    ({'num_examples': -1}, ValueError, r'^num_examples must be at least 0'),
    ({'num_examples': 2.0}, TypeError, r'^num_examples must be an integer'),
    (
      {'test_fraction': 1.0},
      ValueError,
      r'^test_fraction must be in \[0, 1\), found 1\.0\.$',
    ),
    (
      {'holdout_fraction': -0.1},
      ValueError,
      r'^holdout_fraction must be in \[0, 1\), found -0\.1\.$',
    ),
    (
      {'holdout_fraction': '10%'},
      TypeError,
      r"^holdout_fraction must be a real number, found '10%'\.$",
    ),
  ],
)
def test_split_sizes_refuses(arguments, error, message):
  with pytest.raises(error, match=message):
    splits.split_sizes(**{'num_examples': 10, **arguments})


def test_split_client_divides_the_indices():
  indices = np.arange(300, 400)
  split = splits.split_client(indices, client_id=0, seed=0)
  assert [len(part) for part in split] == [72, 8, 20]
  assert sorted(np.concatenate(split)) == indices.tolist()
  for part in split:
    assert (np.diff(part) > 0).all()
  # A random fifth of 100 does not end before the last quarter.
  assert split.test.max() > 375


def test_split_client_depends_on_seed_and_client_only():
  indices = np.arange(100)
  split = splits.split_client(indices, client_id=3, seed=5)
  for client_id, seed, same in [(3, 5, True), (4, 5, False), (3, 6, False)]:
    other = splits.split_client(indices, client_id=client_id, seed=seed)
    assert np.array_equal(split.train, other.train) == same


def test_split_clients_splits_each_by_its_id():
  partition = [np.arange(50), np.arange(50, 90), np.arange(90, 91)]
  result = splits.split_clients(partition, seed=2)
  assert [tuple(map(len, split)) for split in result] == [
    (36, 4, 10),
    (29, 3, 8),
    (1, 0, 0),
  ]
  alone = splits.split_client(partition[1], client_id=1, seed=2)
  assert np.array_equal(result[1].test, alone.test)
