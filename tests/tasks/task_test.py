import collections
import gc

import numpy as np
import pytest
import tensorflow as tf

from tests import refusals
from tff_fair import splits
from tff_fair.own_data import encoded
from tff_fair.tasks import task

# Two clients of a data set of six examples, whose x tells the position; the
# second client has only training data.
_DATA = task.Examples(
  np.arange(6, dtype=np.float32)[:, np.newaxis],
  np.array([0, 1, 2, 0, 1, 2], np.int32),
)
_SPLITS = tuple(
  splits.Split(*(np.array(part, np.int64) for part in parts))
  for parts in [([0, 4], [3], [2]), ([1], [], []), ([], [], [5])]
)


def _task(**changes):
  arguments = {
    'name': 'tiny',
    'num_classes': 3,
    'model_fn': tf.keras.Model,
    'data': _DATA,
    'splits': _SPLITS,
  }
  return task.Task(**{**arguments, **changes})


def test_examples_are_those_of_the_split():
  train, holdout, test = _task().examples(0)
  assert train.x.tolist() == [[0.0], [4.0]]
  assert train.y.tolist() == [0, 1]
  assert holdout.x.tolist() == [[3.0]]
  assert test.y.tolist() == [2]
  for part in _task().examples(np.int64(1))[1:]:
    assert part.x.shape == (0, 1)
    assert part.x.dtype == np.float32 and part.y.dtype == np.int32


def test_global_test_pools_the_test_parts_in_order():
  tiny = _task()
  assert tiny.global_test.x.tolist() == [[2.0], [5.0]]
  assert tiny.global_test.y.tolist() == [2, 2]


def _with_server():
  """The first client keeps 0 and 1; 2 and 3 validate, 5 tests."""
  nothing = np.empty(0, np.int64)
  client = splits.Split(np.array([0, 1]), nothing, nothing)
  server = splits.ServerSplit(
    np.array([0, 1, 4]), np.array([2, 3]), np.array([5])
  )
  return _task(splits=(client,), server=server)


def test_validation_and_test_of_the_server():
  tiny = _with_server()
  assert tiny.has_server_test
  assert tiny.validation.x.tolist() == [[2.0], [3.0]]
  assert tiny.validation.y.tolist() == [2, 0]
  assert tiny.global_test.x.tolist() == [[5.0]]


def test_without_a_server_the_pooled_holdout_parts_validate():
  tiny = _task()
  assert not tiny.has_server_test
  parts = [tiny.examples(i).holdout for i in range(tiny.num_clients)]
  x, y = map(np.concatenate, zip(*parts, strict=True))
  assert len(y) > 0
  np.testing.assert_array_equal(tiny.validation.x, x)
  np.testing.assert_array_equal(tiny.validation.y, y)


def test_free_riders_come_last_and_have_no_data():
  tiny = _task()
  assert tiny.free_riders == ()
  accompanied = tiny.with_free_riders(2)
  assert tiny.num_clients == 3
  assert accompanied.num_clients == 5
  assert accompanied.free_riders == (3, 4)
  assert [accompanied.num_train(i) for i in range(5)] == [2, 1, 0, 0, 0]
  assert [len(part.y) for part in accompanied.examples(4)] == [0, 0, 0]
  assert accompanied.client_data(0) is not tiny.client_data(0)
  np.testing.assert_array_equal(accompanied.global_test.x, tiny.global_test.x)


def test_unseen_clients_are_a_task_of_their_own():
  tiny = _task(client_names=('a', 'b', 'c'), notes=('A note.',))
  seen = tiny.with_unseen(0.34, seed=0)
  assert (seen.num_clients, seen.unseen.num_clients) == (2, 1)
  assert sorted(seen.client_names + seen.unseen.client_names) == [*'abc']
  parts = zip(seen.client_names, seen.splits, strict=True)
  others = zip(seen.unseen.client_names, seen.unseen.splits, strict=True)
  of = dict(zip('abc', _SPLITS, strict=True))
  for name, split in (*parts, *others):
    assert split is of[name]
  assert seen.notes == (
    'A note.',
    '1 of 3 clients are unseen (unseen_fraction=0.34): they take no part in the'
    ' training.',
  )
  assert seen.unseen.notes == () and seen.unseen.unseen is None
  # Their examples are in no pool.
  assert len(seen.validation.y) == sum(len(s.holdout) for s in seen.splits)
  assert tiny.with_unseen(0, seed=0) is tiny


def test_unseen_clients_leave_training_data_to_the_others():
  nothing = np.empty(0, np.int64)
  empty = splits.Split(nothing, nothing, np.array([5]))
  only = _task(splits=(_SPLITS[0], empty))
  # Either the only client with training data is drawn, or the other one.
  found = []
  for seed in range(20):
    try:
      found.append(only.with_unseen(0.5, seed=seed).num_train(0))
    except ValueError as error:
      assert 'training data in, found none among 1 of 2.' in str(error)
      found.append(0)
  assert {*found} == {0, 2}
  refusals.check(
    _with_server().with_unseen,
    [({'fraction': 0.5, 'seed': 0}, ValueError, 'must be of clients that')],
  )


def test_client_data_holds_train_and_holdout_but_no_test():
  data = _task().client_data(0)
  assert isinstance(data, collections.OrderedDict)
  assert list(data) == ['client_id', 'train', 'holdout']
  assert list(data['client_id'].as_numpy_iterator()) == [0]
  (train,) = data['train'].as_numpy_iterator()
  assert train['x'].tolist() == [[0.0], [4.0]]
  assert train['y'].tolist() == [0, 1]
  (holdout,) = data['holdout'].as_numpy_iterator()
  assert holdout['x'].tolist() == [[3.0]]


def test_client_data_is_built_once_for_each_client():
  tiny = _task()
  first = tiny.client_data(1)
  gc.collect()
  assert tiny.client_data(np.int32(1)) is first
  assert tiny.client_data(0) is not first
  assert _task().client_data(1) is not first


def test_groups_of_people_in_the_data_of_clients():
  sex, race = (
    encoded.Groups(column, names, np.array([0, 1, 1, 0, 1, 0]))
    for column, names in (('sex', ('f', 'm')), ('race', ('a', 'b', 'c')))
  )
  binary = _DATA._replace(y=np.minimum(_DATA.y, 1))
  options = {'num_classes': 2, 'data': binary, 'positive_class': 1}
  plain = _task(**options, sensitive=(sex, race))
  found = plain.with_groups()
  assert found.with_groups() is found
  assert not plain.gives_groups and len(found.notes) == 1
  assert "groups 'f' and 'm' of 'sex'. The other" in found.notes[0]
  train = next(found.client_data(0)['train'].as_numpy_iterator())
  assert train['group'].tolist() == [0, 1]
  assert train['group'].dtype == np.int32
  for changes, message in (
    ({}, '^sensitive_columns must name the two groups .*, found none'),
    ({'sensitive': (race, sex)}, "'race', the first one, must .*, found 3"),
    ({'sensitive': (sex,), 'positive_class': None}, 'must be of 2 classes'),
  ):
    with pytest.raises(ValueError, match=message):
      _task(**{**options, **changes}).with_groups()


def test_refuses():
  data = [
    (_DATA.x.astype(np.float64), _DATA.y),
    (_DATA.x, _DATA.y.astype(np.int64)),
    (_DATA.x, _DATA.y[1:]),
  ]
  refusals.check_values(
    _task, {'data': [task.Examples(*pair) for pair in data], 'splits': [()]}
  )
  tiny = _task()
  refusals.check_values(tiny.with_free_riders, {'count': [-1, 1.0]})
  for call in (tiny.examples, tiny.client_data, tiny.num_train):
    refusals.check_values(call, {'client_id': [-1, 3, '0', 0.5, None]})
