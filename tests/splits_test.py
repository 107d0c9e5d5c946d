import functools

from hypothesis import given
from hypothesis import strategies as st
import numpy as np

from tests import properties
from tests import refusals
from tff_fair import splits
from tff_fair.tasks import partitions

# Number of examples -> training, holdout, test; a fifth tests, and a tenth of
# the rest is held out.
_SIZES = {
  0: (0, 0, 0),
  1: (1, 0, 0),  # Holding out the last example would end training.
  2: (1, 1, 0),  # test .4 -> 0; holdout .2 -> 0, at least 1.
  3: (1, 1, 1),  # test .6 -> 1; holdout .2 -> 1.
  6: (4, 1, 1),  # test 1.2 -> 1; holdout .5 -> 1.
  100: (72, 8, 20),
  103: (74, 8, 21),  # test 20.6 -> 21; holdout 8.2 -> 8.
  1393: (1003, 111, 279),  # test 278.6; holdout 111.4.
}
# The same for other fractions.
_FRACTIONS = {
  (50, 0.29, 0.0): (35, 0, 15),  # 14.499999999999998 on a computer.
  (10, 0.0, 0.0): (10, 0, 0),
  (2, 0.9, 0.9): (1, 0, 1),
  (3, 0.5, 0.9): (1, 0, 2),  # Holdout gives way to training.
  (8, 1 / 7, 0.5): (3, 4, 1),
}


def test_split_sizes_by_hand():
  for num_examples, expected in _SIZES.items():
    assert splits.split_sizes(num_examples) == expected
  for (num_examples, test, holdout), expected in _FRACTIONS.items():
    found = splits.split_sizes(
      num_examples, test_fraction=test, holdout_fraction=holdout
    )
    assert found == expected


@properties.SETTINGS
@given(
  st.lists(st.integers(0, 40), max_size=60),
  st.floats(0, 0.99),
  st.floats(0, 0.99),
  st.integers(0, 9),
  st.integers(0, 2**32),
)
def test_a_split_is_disjoint_whole_and_repeatable(
  indices, test, holdout, client_id, seed
):
  """Also of a client that has an example several times."""
  options = {'test_fraction': test, 'holdout_fraction': holdout}

  def split():
    return splits.split_client(
      np.sort(indices).astype(np.int64), client_id=client_id, seed=seed,
      **options,
    )  # fmt: skip

  parts = split()
  assert sorted(np.concatenate(parts)) == sorted(indices)
  distinct = [set(part.tolist()) for part in parts]
  sizes = splits.split_sizes(len(set(indices)), **options)
  assert tuple(map(len, distinct)) == sizes
  assert sum(sizes) == len(set.union(*distinct)) and min(sizes) >= 0
  assert sizes[0] >= 1 or not indices
  for part, again in zip(parts, split(), strict=True):
    assert (np.diff(part) >= 0).all()
    np.testing.assert_array_equal(part, again)


def test_split_sizes_refuses():
  refusals.check_values(
    functools.partial(splits.split_sizes, num_examples=10),
    {
      'num_examples': [-1, 2.0],
      'test_fraction': [1.0],
      'holdout_fraction': [-0.1, '10%'],
    },
  )


def test_a_split_is_random_for_each_client_and_seed():
  indices = np.arange(300, 400)
  split = splits.split_client(indices, client_id=0, seed=0)
  for client_id, seed in [(1, 0), (0, 1)]:
    other = splits.split_client(indices, client_id=client_id, seed=seed)
    assert not np.array_equal(split.train, other.train)
  # A random fifth of 100 does not end before the last quarter.
  assert split.test.max() > 375


def test_split_server_divides_all_examples():
  for changes, expected in [
    # 100 in the file; a tenth of 900 validates.
    ({'test_start': 900}, (810, 90, 100)),
    ({}, (720, 80, 200)),
    ({'test_fraction': 0.5, 'validation_fraction': 0.0}, (500, 0, 500)),
    ({'test_start': 900, 'test_fraction': 0.0}, (810, 90, 100)),
  ]:
    split = splits.split_server(1000, seed=0, **changes)
    assert tuple(map(len, split)) == expected
    assert sorted(np.concatenate(split)) == list(range(1000))
    for part in split:
      assert part.dtype == np.int64
      assert (np.diff(part) > 0).all()
    other = splits.split_server(1000, seed=1, **changes)
    assert not np.array_equal(split.to_deal, other.to_deal)
    # A random part does not lie at one end.
    assert split.to_deal.min() < 50
    assert split.to_deal.max() > 850


def test_split_server_is_not_correlated_with_a_partition_by_the_same_seed():
  # A fifth of the examples each: by chance they share 2,000 of 50,000, with a
  # standard deviation of 36.
  test = splits.split_server(50000, seed=7).test
  for part in partitions.equal(50000, 5, seed=7):
    assert abs(len(np.intersect1d(test, part)) - 2000) < 200


def test_split_server_refuses():
  call = functools.partial(splits.split_server, num_examples=10, seed=0)
  refusals.check_values(
    call,
    {
      'seed': [-1],
      'num_examples': [-1],
      'test_fraction': [1],
      'validation_fraction': [1.5],
      'test_start': [0, 11],
    },
  )
  message = r'^The test set of the server must hold at least one example, found'
  rows = [
    ({'test_fraction': 0.0}, ValueError, message),
    ({'num_examples': 1}, ValueError, message),
    ({'test_start': 10}, ValueError, message),
  ]
  refusals.check(call, rows)


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


def test_duplicates_do_not_change_who_is_in_which_part():
  once = np.arange(20, 60)
  often = np.repeat(once, 3)
  for single, triple in zip(
    splits.split_client(once, client_id=4, seed=1),
    splits.split_client(often, client_id=4, seed=1),
    strict=True,
  ):
    np.testing.assert_array_equal(np.repeat(single, 3), triple)


def test_unseen_clients_are_of_all_sizes():
  # In the order of their sizes: 5 1, 3 0, 4 2.
  sizes = [4, 2, 9, 3, 7, 1]
  drawn = [
    splits.draw_unseen(sizes, fraction=0.5, seed=seed) for seed in range(50)
  ]
  for found in drawn:
    assert found.tolist() == sorted(found)
    groups = [{5, 1}, {3, 0}, {4, 2}]
    assert [len(group & {*found}) for group in groups] == [1, 1, 1]
  assert {i for found in drawn for i in found} == {*range(6)}
  again = splits.draw_unseen(sizes, fraction=0.5, seed=0)
  np.testing.assert_array_equal(again, drawn[0])
  assert splits.draw_unseen(sizes, fraction=0, seed=0).size == 0
  # Rounded half up.
  assert len(splits.draw_unseen(range(10), fraction=0.25, seed=0)) == 3


def test_unseen_clients_are_some_and_not_all():
  call = functools.partial(splits.draw_unseen, range(10), fraction=0.2, seed=0)
  refusals.check_values(call, {'fraction': [-0.1, 1], 'seed': [-1]})
  for fraction, count in ((0.04, 0), (0.97, 10)):
    message = f'must leave some .* {fraction}, which leaves out {count} of 10'
    refusals.check(call, [({'fraction': fraction}, ValueError, message)])


def test_a_leak_by_hand():
  split = splits.Split(
    *(np.array(part, np.int64) for part in ([1, 4, 4], [2], [0, 3]))
  )
  for leak, test in (('test_trains', [0, 3]), ('train_tests', [0, 1, 3, 4, 4])):
    found = splits.with_leak(split, leak)
    assert [part.tolist() for part in found] == [[0, 1, 3, 4, 4], [2], test]
  found = splits.with_leak(split, 'test_validates')
  assert [part.tolist() for part in found] == [[1, 4, 4], [0, 3], [0, 3]]
  refusals.check_values(
    functools.partial(splits.with_leak, split), {'leak': ['none', None]}
  )
