"""Program states in files that hold data only.

`tff.program.FileProgramStateManager` saves SavedModels. Loading one runs the
operations in it, so that a file from a stranger can do what it likes. Here a
state is one safetensors file: arrays, and a description of them in JSON.
"""

from collections.abc import Mapping
import errno
import hashlib
import json
import os
import pathlib
import re
from typing import Any

import numpy as np
import safetensors
from safetensors import numpy as safetensors_numpy
import tensorflow_federated as tff
import tree

from tff_fair import checks
from tff_fair import files

_FORMAT = 1
_HEADER = 'tff_fair'
_SUFFIX = '.safetensors'
_UNFINISHED = '.tmp'
_VERSION = re.compile('0|[1-9][0-9]{0,17}')
# safetensors has no name for other types.
_DTYPES = (
  *('bool', 'float16', 'float32', 'float64', 'complex64'),
  *('int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64'),
)
_JSON_TYPES = frozenset({type(None), bool, int, float, str})


class DamagedStateError(ValueError):
  """A file does not hold a state as it was saved."""


class OtherStateError(ValueError):
  """A file holds a state, but that of another run or of another process."""


class SafetensorsStateManager(tff.program.ProgramStateManager):
  """Saves each version of a program state as a safetensors file.

  It takes the place of `tff.program.FileProgramStateManager`. Leaves of a state
  may be arrays, tensors, Python's `bool`, `int`, `float`, `str`, `bytes` and
  None, and objects with `to_bytes` and `from_bytes` such as the iterator of a
  `client.ClientDataSource`. They come back as NumPy arrays, or with the same
  Python type.

  A file is written under another name and then renamed, so it is whole or
  absent. Its header has the version of the format, the version of the state,
  `settings`, and a SHA-256 of every leaf and of the header itself.
  """

  def __init__(
    self,
    root_dir: str | os.PathLike[str],
    *,
    prefix: str = 'program_state_',
    keep_total: int = 5,
    keep_first: bool = True,
    keep_every: int = 1,
    settings: Mapping[str, str] | None = None,
  ) -> None:
    """Opens a folder, which is made by the first `save`.

    Args:
      root_dir: The folder.
      prefix: The names of the files are the prefix, the version, and
        '.safetensors'.
      keep_total: How many versions to keep, at least 1; older ones are removed
        after a `save`.
      keep_first: Whether the oldest version is one of them.
      keep_every: Versions that are no multiple of it, such as that of an
        interrupted run, are kept until the next `save`; at least 1.
      settings: What the states belong to, such as the flags of a run. A state
        that was saved with other settings is refused.

    Raises:
      TypeError: If `keep_total` or `keep_every` is not an integer.
      ValueError: If one of them is less than 1.
    """
    self._root = pathlib.Path(root_dir)
    self._prefix = prefix
    self._keep_total = checks.check_integer('keep_total', keep_total, 1)
    self._keep_first = keep_first
    self._keep_every = checks.check_integer('keep_every', keep_every, 1)
    self._settings = dict(settings or {})

  def path(self, version: int) -> pathlib.Path:
    """The file of a version.

    Args:
      version: The version, saved or not.
    """
    return self._root / f'{self._prefix}{version}{_SUFFIX}'

  async def get_versions(self) -> list[int] | None:
    """The saved versions, ascending; None without any."""
    names = [path.name for path in self._root.glob(f'*{_SUFFIX}')]
    numbers = [
      name[len(self._prefix) : -len(_SUFFIX)]
      for name in names
      if name.startswith(self._prefix)
    ]
    # As `path` writes them, so not copies such as round_007.
    versions = [int(n) for n in numbers if _VERSION.fullmatch(n)]
    return sorted(v for v in versions if self.path(v).is_file()) or None

  async def load(self, version: int, structure: Any) -> Any:
    """Loads a version.

    Args:
      version: The version.
      structure: A state with the same containers and the same classes of
        objects. Shapes and types of arrays are those of the file.

    Returns:
      The state.

    Raises:
      tff.program.ProgramStateNotFoundError: If there is no such version.
      DamagedStateError: If the file is not as it was saved.
      OtherStateError: If it was saved with other settings, or has another
        structure or a format that this code does not know.
    """
    path = self.path(version)
    if not path.is_file():
      raise tff.program.ProgramStateNotFoundError(version)

    def damaged(found):
      return DamagedStateError(f'{path} is damaged: {found}.')

    with files.reading(path, damaged, passing=(OtherStateError, MemoryError)):
      return self._load(path, version, structure)

  def _load(self, path, version, structure) -> Any:
    description, arrays = _read(path)
    self._check_origin(path, version, description)
    kinds = description['leaves']
    flat = tree.flatten_with_path(structure)
    names = [_leaf_name(position) for position, _ in flat]
    if set(names) != set(kinds):
      raise OtherStateError(
        f'{path} must hold a state with the structure of this process, found'
        f' {_difference(set(names), set(kinds))}.'
      )
    leaves = [
      _from_saved(kinds[name], arrays.get(name), like)
      for name, (_, like) in zip(names, flat, strict=True)
    ]
    return tree.unflatten_as(structure, leaves)

  async def save(self, program_state: Any, version: int) -> None:
    """Saves a version, and removes old ones.

    Args:
      program_state: The state.
      version: Its version.

    Raises:
      tff.program.ProgramStateExistsError: If the version exists.
      TypeError: If a leaf is of a type that cannot be saved.
      OSError: If the file cannot be written; what was there remains.
    """
    path = self.path(version)
    if path.is_file():
      raise tff.program.ProgramStateExistsError(
        version=version, path=os.fspath(self._root)
      )
    state = await tff.program.materialize_value(program_state)
    kinds: dict[str, Any] = {}
    arrays: dict[str, np.ndarray] = {}
    for position, leaf in tree.flatten_with_path(state):
      _add_leaf(_leaf_name(position), leaf, kinds, arrays)
    description = {
      'format': _FORMAT,
      'version': int(version),
      'settings': self._settings,
      'leaves': kinds,
    }
    _write(path, description, arrays)
    await self._remove_old()

  async def remove_all(self) -> None:
    """Removes all versions."""
    for version in await self.get_versions() or []:
      self.path(version).unlink(missing_ok=True)

  def remove_unfinished(self) -> None:
    """Removes what interrupted calls of `save` have left.

    Call it when no other process saves to the folder.
    """
    for path in self._root.glob(f'{self._prefix}*{_UNFINISHED}'):
      path.unlink(missing_ok=True)

  async def _remove_old(self):
    versions = await self.get_versions() or []
    kept = [v for v in versions[:-1] if v % self._keep_every == 0]
    kept += versions[-1:]
    first = kept[:1] if self._keep_first else []
    rest = kept[len(first) :]
    num_removed = max(0, len(kept) - self._keep_total)
    for version in {*versions} - {*first, *rest[num_removed:]}:
      self.path(version).unlink(missing_ok=True)

  def _check_origin(self, path, version, description) -> None:
    """Refuses what was not saved as this version, with these settings."""
    if description['version'] != version:
      raise OtherStateError(
        f'{path} must hold version {version}, found version'
        f' {description["version"]}.'
      )
    found = checks.differences(description['settings'], self._settings)
    if found:
      raise OtherStateError(
        f'{path} must hold a state with the same settings, found that {found}.'
      )


def _leaf_name(position: tuple[Any, ...]) -> str:
  """The name of a leaf in the file."""
  return '/'.join(map(str, position)) or 'state'


def _add_leaf(name, leaf, kinds, arrays) -> None:
  """Adds a leaf to what a file holds.

  Args:
    name: Its name.
    leaf: Its value.
    kinds: Name -> how to restore the leaf, and its value if JSON can have it.
    arrays: Name -> what JSON cannot have.
  """
  if name in kinds:
    raise ValueError(f'Names in a state must differ, found {name!r} twice.')
  if type(leaf) in _JSON_TYPES:  # NumPy's float64 is a subclass of float.
    kinds[name] = {'kind': 'value', 'value': leaf}
    return
  kind = 'array'
  if isinstance(leaf, bytes):
    kind, leaf = 'bytes', np.frombuffer(leaf, np.uint8)
  elif hasattr(leaf, 'to_bytes') and hasattr(type(leaf), 'from_bytes'):
    kind, leaf = 'object', np.frombuffer(leaf.to_bytes(), np.uint8)
  # In C order, since safetensors takes the memory as it is.
  array = np.asarray(leaf, order='C')
  if array.dtype.name not in _DTYPES:
    raise TypeError(
      'A state must hold numbers, text, bytes, or objects with to_bytes, found'
      f' {type(leaf).__name__} of dtype {array.dtype} at {name}.'
    )
  arrays[name] = array
  kinds[name] = {'kind': kind, 'sha256': _digest(array)}


def _from_saved(kind, array, like) -> Any:
  if kind['kind'] == 'value':
    return kind['value']
  if kind['kind'] == 'array':
    return array[()] if array.ndim == 0 else array
  content = array.tobytes()
  return content if kind['kind'] == 'bytes' else type(like).from_bytes(content)


def _write(path, description, arrays) -> None:
  """Writes a file under another name, and renames it."""
  path.parent.mkdir(parents=True, exist_ok=True)
  text = json.dumps(description, sort_keys=True)
  # One entry: safetensors writes several in any order.
  header = {_HEADER: f'{_text_digest(text)} {text}'}
  unfinished = path.with_name(f'{path.name}{_UNFINISHED}')
  try:
    unfinished.touch()
    mode = unfinished.stat().st_mode
    safetensors_numpy.save_file(arrays, unfinished, header)
    unfinished.chmod(mode)  # safetensors lets only the owner read.
    os.replace(unfinished, path)
  except safetensors.SafetensorError as error:
    code = _os_error(error)
    raise OSError(code, os.strerror(code), os.fspath(path)) from error
  finally:
    unfinished.unlink(missing_ok=True)


def _os_error(error: safetensors.SafetensorError) -> int:
  """The operating system's code in safetensors' message."""
  found = re.search(r'os error (\d+)', str(error))
  return int(found[1]) if found else errno.EIO


def _read(path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
  """The description and the arrays in a file, both as they were saved."""
  try:
    with safetensors.safe_open(path, 'np', backend='pread') as file:
      header = (file.metadata() or {}).get(_HEADER, '')
      digest, _, text = header.partition(' ')
      if _text_digest(text) != digest:
        raise ValueError('its header has changed')
      description = json.loads(text)
      if description['format'] != _FORMAT:
        raise OtherStateError(
          f'{path} must have format {_FORMAT}, found format'
          f' {description["format"]}, of another version of tff-fair.'
        )
      arrays = file.get_tensors()
  except safetensors.SafetensorError as error:
    raise ValueError(error) from error
  expected = {
    name: leaf['sha256']
    for name, leaf in description['leaves'].items()
    if 'sha256' in leaf
  }
  if {name: _digest(array) for name, array in arrays.items()} != expected:
    raise ValueError('its arrays have changed')
  return description, arrays


def _digest(array: np.ndarray) -> str:
  """SHA-256 of an array's type, shape and content."""
  digest = hashlib.sha256(f'{array.dtype.name}{array.shape}'.encode())
  digest.update(array.reshape(-1).view(np.uint8).data)
  return digest.hexdigest()


def _text_digest(text: str) -> str:
  return hashlib.sha256(text.encode()).hexdigest()


def _difference(here: set[str], there: set[str]) -> str:
  parts = [
    f'{len(names)} entries {where} alone ({min(names)})'
    for names, where in ((there - here, 'there'), (here - there, 'here'))
    if names
  ]
  return ' and '.join(parts)
