import hashlib
import os
import pathlib
import socket

import pytest
import tensorflow as tf

from tff_fair.tasks import sources


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch):
  monkeypatch.delenv(sources.DATA_DIR_VARIABLE, raising=False)


def _offline():
  try:
    raise OSError('no such host')
  except OSError as error:
    raise Exception(f'fetch failed:\n  {error}.') from error


def test_find_file(tmp_path, monkeypatch):
  for name in ('argument', 'variable', 'here'):
    (tmp_path / name).mkdir()
    (tmp_path / name / 'a.npz').touch()
  (tmp_path / 'argument' / 'folder').mkdir()
  monkeypatch.chdir(tmp_path / 'here')
  for variable in ('', str(tmp_path / 'variable')):
    monkeypatch.setenv(sources.DATA_DIR_VARIABLE, variable)
    folder = tmp_path / 'argument'
    assert sources.find_file('a.npz', str(folder)) == folder / 'a.npz'
    assert sources.find_file('folder', folder) == folder / 'folder'
    assert sources.find_file('b.npz', folder) is None
    # Without an argument: the variable, and never the working directory.
    expected = tmp_path / 'variable' / 'a.npz' if variable else None
    assert sources.find_file('a.npz', None) == expected


def test_fetch_bounds_each_wait_for_the_network_and_restores_the_bound():
  before = socket.getdefaulttimeout()
  during = sources.fetch(
    'a', socket.getdefaulttimeout, data_dir=None, cache_dir='cache'
  )
  assert 0 < during <= 30
  with pytest.raises(sources.DataNotFoundError):
    sources.fetch('a', _offline, data_dir=None, cache_dir='cache')
  assert socket.getdefaulttimeout() == before


def test_fetch_gives_up_on_a_host_that_does_not_answer(monkeypatch):
  monkeypatch.setattr(sources, '_TIMEOUT_SECONDS', 0.1)
  with socket.create_server(('127.0.0.1', 0)) as server:

    def fetch():
      with socket.create_connection(server.getsockname()) as connection:
        return connection.recv(1)

    with pytest.raises(
      sources.DataNotFoundError, match=r'download \(timed out\)\.$'
    ):
      sources.fetch('a', fetch, data_dir=None, cache_dir='cache')


def test_fetch_says_in_one_sentence_what_was_tried(tmp_path):
  for data_dir, folder in [
    (None, r'no data folder set \(--data_dir or TFF_FAIR_DATA_DIR\)'),
    (tmp_path, f"no such file in '{tmp_path}'"),
    # Only the environment variable may name a folder that is not there.
    (tmp_path / 'x', f"no folder '{tmp_path / 'x'}'"),
  ]:
    message = (
      rf"'a\.npz' must .* found {folder}, .* '~/cache', .*: no such host"
    )
    with pytest.raises(sources.DataNotFoundError, match=message):
      sources.fetch('a.npz', _offline, data_dir=data_dir, cache_dir='~/cache')


def test_a_folder_that_is_named_must_exist(tmp_path, monkeypatch):
  sources.check_data_dir(None)
  sources.check_data_dir(tmp_path)
  file = tmp_path / 'file'
  file.touch()
  long = tmp_path / ('x' * 300)
  for folder, message in (
    (tmp_path / 'x', 'must exist, found no such folder'),
    (file, 'must exist, found no such folder'),
    (long, 'must be readable, found: File name too long'),
  ):
    with pytest.raises(
      sources.DataNotFoundError,
      match=rf"^The data folder '{folder}' {message}\.$",
    ):
      sources.check_data_dir(str(folder))
  monkeypatch.setenv(sources.DATA_DIR_VARIABLE, str(tmp_path / 'x'))
  sources.check_data_dir(None)


class TestDownload:
  @pytest.fixture(autouse=True)
  def _origin(self, tmp_path):
    self.origin, self.path = tmp_path / 'origin', tmp_path / 'cache' / 'a.npz'
    self.origin.write_bytes(b'whole')
    self.file = sources.Download(
      self.origin.as_uri(), hashlib.sha256(b'whole').hexdigest()
    )

  def _download(self):
    assert sources.download(self.file, self.path) == self.path
    assert self.path.read_bytes() == b'whole'
    assert os.listdir(self.path.parent) == ['a.npz']

  def test_takes_what_is_whole_in_the_cache(self):
    self._download()
    self.origin.unlink()
    self._download()

  def test_replaces_what_is_damaged_in_the_cache(self):
    self.path.parent.mkdir()
    for content in (b'', b'whol', b'whole\n'):
      self.path.write_bytes(content)
      self._download()

  def test_another_file_is_not_taken(self):
    self.origin.write_bytes(b'whol')
    with pytest.raises(ValueError, match='sha256 file hash does not match'):
      sources.download(self.file, self.path)
    assert not os.listdir(self.path.parent)

  def test_nothing_is_seen_before_it_is_whole(self, monkeypatch):
    """So nothing that is taken for data is left, even by `kill -9`."""

    def get_file(name, *_, cache_dir, **__):
      pathlib.Path(cache_dir, name).write_bytes(b'whol')
      assert 'a.npz' not in os.listdir(self.path.parent)
      raise KeyboardInterrupt

    monkeypatch.setattr(tf.keras.utils, 'get_file', get_file)
    with pytest.raises(KeyboardInterrupt):
      sources.download(self.file, self.path)
    assert not os.listdir(self.path.parent)

  def test_two_at_once(self, monkeypatch):
    get_file = tf.keras.utils.get_file

    def get_file_while_another_does(*arguments, **options):
      monkeypatch.setattr(tf.keras.utils, 'get_file', get_file)
      path = get_file(*arguments, **options)
      sources.download(self.file, self.path)
      return path

    monkeypatch.setattr(tf.keras.utils, 'get_file', get_file_while_another_does)
    self._download()
