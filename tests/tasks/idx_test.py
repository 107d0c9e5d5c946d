import gzip

import numpy as np

from tests.tasks import idx_file
from tests.tasks import refusals
from tff_fair.tasks import idx
from tff_fair.tasks import sources


def test_reads_an_array(tmp_path):
  path = tmp_path / 'array.gz'
  for shape in [(6,), (3, 2), (2, 3, 4)]:
    expected = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    idx_file.write(path, idx_file.header(shape) + expected.tobytes())
    found = idx.read(path)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected)


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


def test_refuses_another_content(tmp_path):
  path = tmp_path / 'array.gz'
  message = (
    rf"^The data file '{path}' must hold a gzip-compressed idx array of "
    r'unsigned bytes, found a file of another format\.$'
  )
  for content in [
    b'',
    b'\x00\x00\x08',
    idx_file.header((2, 2))[:-1],
    idx_file.header((2, 2)) + bytes(3),
    idx_file.header((2, 2)) + bytes(5),
    idx_file.header((2, 2), element_type=13) + bytes(16),
    idx_file.header((2**32 - 1,) * 3) + bytes(4),
    b'\x00\x00\x08\xff' + bytes(2000),
    b'<html>not found</html>',
  ]:
    idx_file.write(path, content)
    refusals.check(
      idx.read, [({'path': path}, sources.DataDamagedError, message)]
    )


def _flipped(content):
  middle = bytes(255 - byte for byte in content[500:510])
  return content[:500] + middle + content[510:]


def test_refuses_an_unreadable_file(tmp_path):
  path = tmp_path / 'array.gz'
  pixels = np.random.default_rng(0).bytes(1000)
  idx_file.write(path, idx_file.header((1000,)) + pixels)
  whole = path.read_bytes()
  message = rf"^The data file '{path}' .*, found an unreadable file \(.+\)\.$"
  for content in (gzip.decompress(whole), whole[:-20], _flipped(whole), None):
    path.unlink()
    if content is not None:
      path.write_bytes(content)
    refusals.check(
      idx.read, [({'path': path}, sources.DataDamagedError, message)]
    )
