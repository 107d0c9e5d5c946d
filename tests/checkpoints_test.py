"""States in safetensors files."""

import asyncio
import collections
import errno
import json
import os

import numpy as np
import pytest
import safetensors
from safetensors import numpy as safetensors_numpy
import tensorflow as tf
import tensorflow_federated as tff

from tests import refusals
from tff_fair import checkpoints


class _Iterator:
  """An object of a program, such as a data source's iterator."""

  def __init__(self, position):
    self.position = position

  @classmethod
  def from_bytes(cls, buffer):
    return cls(int(buffer))

  def to_bytes(self):
    return str(self.position).encode()


def _manager(path, **options):
  return checkpoints.SafetensorsStateManager(path, **options)


def _save(manager, state, version):
  asyncio.run(manager.save(state, version))


def _load(manager, version, structure):
  return asyncio.run(manager.load(version, structure))


def _versions(manager):
  return asyncio.run(manager.get_versions())


def test_every_kind_of_leaf_comes_back_as_it_was(tmp_path):
  weights = tff.learning.models.ModelWeights(
    [np.arange(6, dtype=np.float32).reshape(2, 3).T], []
  )
  state = collections.OrderedDict(
    weights=weights,
    table={'round': np.int32(7), 'seen': np.array([True, False])},
    values=[None, True, 3, 0.1, float('inf'), 'é', b'\0\xff', ()],
    number=np.float64(0.1),
    tensor=tf.constant([1, 2], tf.int64),
    empty=np.zeros([0, 4], np.int32),
    iterator=_Iterator(12),
  )
  _save(_manager(tmp_path), state, 3)
  like = {**state, 'iterator': _Iterator(0)}
  found = _load(_manager(tmp_path), 3, collections.OrderedDict(like))
  assert isinstance(found['weights'], tff.learning.models.ModelWeights)
  for name in ('tensor', 'empty', 'number'):
    expected = np.asarray(state[name])
    assert np.asarray(found[name]).dtype == expected.dtype
    np.testing.assert_array_equal(found[name], expected)
  np.testing.assert_array_equal(found['weights'].trainable, weights.trainable)
  assert found['table']['round'] == 7
  assert found['table']['seen'].tolist() == [True, False]
  assert found['values'] == state['values']
  assert list(map(type, found['values'])) == list(map(type, state['values']))
  assert found['iterator'].position == 12
  # Readable for others, like all files of a run.
  (tmp_path / 'other').touch()
  path = _manager(tmp_path).path(3)
  assert path.stat().st_mode == (tmp_path / 'other').stat().st_mode


@pytest.mark.parametrize('keep_first', [True, False])
def test_old_versions_go(tmp_path, keep_first):
  manager = _manager(tmp_path, keep_total=2, keep_first=keep_first)
  assert _versions(manager) is None
  for version in (8, 9, 10):
    _save(manager, [np.float32(version)], version)
  kept = [8, 10] if keep_first else [9, 10]
  assert _versions(manager) == kept
  assert asyncio.run(manager.load_latest([0])) == ([10], 10)
  asyncio.run(manager.remove_all())
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('keep_first', [True, False])
def test_others_than_planned_go_with_the_next(tmp_path, keep_first):
  manager = _manager(
    tmp_path, keep_total=2, keep_first=keep_first, keep_every=5
  )
  for version in (5, 7, 8):
    _save(manager, [np.float32(version)], version)
  assert _versions(manager) == [5, 8]
  for version in (10, 15):
    _save(manager, [np.float32(version)], version)
  assert _versions(manager) == ([5, 15] if keep_first else [10, 15])


def test_only_its_own_files_are_versions(tmp_path):
  _save(_manager(tmp_path, prefix='a_'), [1], 3)
  (tmp_path / 'a_4').mkdir()  # As TFF's manager writes it.
  for name in ('a_x', 'a_07', 'a_\u0669', 'a_-1', 'a_1_0', f'a_{10**40}'):
    (tmp_path / f'{name}.safetensors').touch()
  (tmp_path / 'a_98.safetensors').mkdir()
  os.mkfifo(tmp_path / 'a_99.safetensors')
  assert _versions(_manager(tmp_path, prefix='b_')) is None
  assert _versions(_manager(tmp_path, prefix='a_')) == [3]


def test_any_damage_is_found(tmp_path):
  manager = _manager(tmp_path, settings={'seed': '0'})
  state = {'a': np.ones([3], np.float32), 'b': 2}
  _save(manager, state, 1)
  whole = manager.path(1).read_bytes()
  flipped = [
    whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :]
    for i in range(0, len(whole), 3)
  ]
  cut = [whole[:size] for size in (0, 7, 100, len(whole) - 1)]
  for content in [*flipped, *cut, whole + b'0']:
    manager.path(1).write_bytes(content)
    with pytest.raises(checkpoints.DamagedStateError, match='is damaged: '):
      _load(manager, 1, state)


def test_a_forged_file_is_damaged(tmp_path):
  """Right checksums of what no manager writes."""
  manager = _manager(tmp_path)
  state = {'a': np.ones([3], np.float32), 'b': 2, 'c': _Iterator(5)}
  _save(manager, state, 1)
  arrays = safetensors_numpy.load_file(manager.path(1))
  with safetensors.safe_open(manager.path(1), 'np') as file:
    text = file.metadata()['tff_fair'].partition(' ')[2]
  whole = json.loads(text)
  texts = ['', '[]', '7', 'null', '{', 2000 * '[', '{"format": 1}']
  for key in whole:
    texts.append(json.dumps({k: v for k, v in whole.items() if k != key}))
    if key != 'format':
      texts += [json.dumps({**whole, key: value}) for value in ([1], None)]
  for name in whole['leaves']:
    for leaf in (None, {}, {'kind': 'array'}, {'kind': 'object'}):
      leaves = {**whole['leaves'], name: leaf}
      texts.append(json.dumps({**whole, 'leaves': leaves}))
  for text in texts:
    header = {'tff_fair': f'{checkpoints._text_digest(text)} {text}'}
    safetensors_numpy.save_file(arrays, manager.path(1), header)
    with pytest.raises(
      (checkpoints.DamagedStateError, checkpoints.OtherStateError)
    ) as error:
      _load(manager, 1, {**state, 'c': _Iterator(0)})
    assert str(manager.path(1)) in str(error.value)
  os.unlink(manager.path(1))
  os.mkdir(manager.path(1))
  # Not as if it had been saved.
  with pytest.raises(OSError, match='round|1.safetensors'):
    _save(manager, state, 1)


def test_a_state_of_something_else_is_refused(tmp_path):
  manager = _manager(tmp_path, settings={'seed': '0', 'task': 'digits'})
  _save(manager, {'a': 1, 'b': [2]}, 1)
  os.link(manager.path(1), manager.path(2))
  text = json.dumps({'format': 99})
  header = {'tff_fair': f'{checkpoints._text_digest(text)} {text}'}
  safetensors_numpy.save_file({}, manager.path(3), header)
  like = {'a': 0, 'b': [0]}
  other = _manager(tmp_path, settings={'seed': '1', 'rounds': '5'})
  for opened, version, structure, message in (
    (
      other,
      1,
      like,
      'found that rounds is not set there and 5 here; seed is 0 there and 1'
      ' here; task is digits there and not set here',
    ),
    (manager, 1, {'a': 0}, r'found 1 entries there alone \(b/0\)'),
    (
      manager,
      1,
      {'a': 0, 'b': [], 'c': 0},
      r'\(b/0\) and 1 entries here alone \(c\)',
    ),
    (manager, 2, like, 'must hold version 2, found version 1'),
    (manager, 3, like, 'found format 99, of another version of tff-fair'),
  ):
    with pytest.raises(checkpoints.OtherStateError, match=message):
      _load(opened, version, structure)
  with pytest.raises(tff.program.ProgramStateNotFoundError):
    _load(manager, 4, like)


def test_what_cannot_be_saved(tmp_path):
  manager = _manager(tmp_path)
  _save(manager, [1], 1)
  with pytest.raises(tff.program.ProgramStateExistsError):
    _save(manager, [2], 1)
  for state, error, message in (
    ([{1, 2}], TypeError, r'found set of dtype object at 0\.$'),
    ([np.array(['a'])], TypeError, r'found ndarray of dtype <U1 at 0\.$'),
    ({'a': {'b': 1}, 'a/b': 2}, ValueError, "found 'a/b' twice"),
  ):
    with pytest.raises(error, match=message):
      _save(manager, state, 2)
  refusals.check(
    checkpoints.SafetensorsStateManager,
    [
      ({'keep_total': 0}, ValueError, '^keep_total must be at least 1'),
      ({'keep_total': 'all'}, TypeError, '^keep_total must be an integer'),
      ({'keep_every': 0}, ValueError, '^keep_every must be at least 1'),
    ],
    root_dir=tmp_path,
  )


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
  manager = _manager(tmp_path)
  _save(manager, [1], 1)

  def save_half(tensors, path, header):
    path.write_bytes(b'half')
    raise safetensors.SafetensorError('I/O error: ... (os error 28)')

  monkeypatch.setattr(safetensors_numpy, 'save_file', save_half)
  with pytest.raises(OSError) as error:
    _save(manager, [2], 2)
  assert error.value.errno == errno.ENOSPC
  assert error.value.filename == str(manager.path(2))
  assert list(tmp_path.iterdir()) == [manager.path(1)]
  assert _load(manager, 1, [0]) == [1]


def test_what_a_kill_leaves_is_removed(tmp_path):
  manager = _manager(tmp_path, prefix='round_')
  _save(manager, [1], 1)
  (tmp_path / 'round_2.safetensors.tmp').write_bytes(b'half')
  manager.remove_unfinished()
  assert [path.name for path in tmp_path.iterdir()] == ['round_1.safetensors']
