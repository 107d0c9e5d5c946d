import gzip

import numpy as np
import pytest

from tasks import idx
from tasks import sources
from tests.tasks import idx_file


@pytest.mark.parametrize('shape', [(6,), (3, 2), (2, 3, 4)])
def test_reads_an_array(shape, tmp_path):
  path = tmp_path / 'array.gz'
  expected = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
  idx_file.write(path, idx_file.header(shape) + expected.tobytes())
  found = idx.read(path)
  assert found.dtype == np.uint8
  np.testing.assert_array_equal(found, expected)


def test_the_format_byte_by_byte(tmp_path):
  path = tmp_path / 'array.gz'
  idx_file.write(
    path,
    b'\x00\x00\x08\x02' + b'\x00\x00\x00\x02' + b'\x00\x00\x00\x01\x07\xff',
  )
  assert idx.read(str(path)).tolist() == [[7], [255]]


def test_sizes_are_big_endian_and_may_exceed_a_byte(tmp_path):
  path = tmp_path / 'array.gz'
  idx_file.write(path, b'\x00\x00\x08\x01\x00\x01\x00\x02' + bytes(65538))
  assert idx.read(path).shape == (65538,)


def test_read_folder_names_the_arrays(tmp_path):
  arrays = {
    'x_train': np.full((3, 2, 2), 1),
    'y_train': np.full(3, 2),
    'x_test': np.full((1, 2, 2), 3),
    'y_test': np.full(1, 4),
  }
  idx_file.write_folder(tmp_path / 'folder', arrays)
  found = idx.read_folder(tmp_path / 'folder')
  assert list(found) == list(arrays)
  for key, array in arrays.items():
    np.testing.assert_array_equal(found[key], array)


@pytest.mark.parametrize(
  'content',
  [
    b'',
    b'\x00\x00\x08',
    idx_file.header((2, 2))[:-1],
    idx_file.header((2, 2)) + bytes(3),
    idx_file.header((2, 2)) + bytes(5),
    idx_file.header((2, 2), element_type=13) + bytes(16),
    idx_file.header((2**32 - 1,) * 3) + bytes(4),
    b'\x00\x00\x08\xff' + bytes(2000),
    b'<html>not found</html>',
  ],
  ids=[
    'nothing',
    'no_axes',
    'no_sizes',
    'too_short',
    'too_long',
    'floats',
    'huge',
    'too_many_axes',
    'text',
  ],
)
def test_refuses_another_content_in_one_sentence(content, tmp_path):
  path = tmp_path / 'array.gz'
  idx_file.write(path, content)
  with pytest.raises(
    sources.DataDamagedError,
    match=(
      rf"^The data file '{path}' must hold a gzip-compressed idx array of "
      r'unsigned bytes, found a file of another format\.$'
    ),
  ):
    idx.read(path)


def _missing(path):
  path.unlink()


def _uncompressed(path):
  path.write_bytes(gzip.decompress(path.read_bytes()))


def _truncated(path):
  path.write_bytes(path.read_bytes()[:-20])


def _flipped(path):
  content = bytearray(path.read_bytes())
  content[500:510] = bytes(255 - byte for byte in content[500:510])
  path.write_bytes(content)


@pytest.mark.parametrize(
  'damage', [_missing, _uncompressed, _truncated, _flipped]
)
def test_refuses_an_unreadable_file_in_one_sentence(damage, tmp_path):
  path = tmp_path / 'array.gz'
  pixels = np.random.default_rng(0).bytes(1000)
  idx_file.write(path, idx_file.header((1000,)) + pixels)
  damage(path)
  with pytest.raises(
    sources.DataDamagedError,
    match=rf"^The data file '{path}' .*, found an unreadable file \(.+\)\.$",
  ) as caught:
    idx.read(path)
  assert '\n' not in str(caught.value)
