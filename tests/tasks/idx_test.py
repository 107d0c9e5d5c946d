import gzip

import numpy as np

from tests import refusals
from tests.tasks import image_files
from tff_fair.tasks import idx
from tff_fair.tasks import sources


def test_reads_an_array(tmp_path):
  path = tmp_path / 'array.gz'
  # Sizes are big-endian, and may exceed a byte.
  for shape in [(6,), (3, 2), (2, 3, 4), (65538,)]:
    expected = np.arange(np.prod(shape)).astype(np.uint8).reshape(shape)
    image_files.write_idx(path, expected)
    found = idx.read(path)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected)


def test_refuses_another_content(tmp_path):
  path = tmp_path / 'array.gz'
  message = rf"^The data file '{path}' .* found a file of another format\.$"
  header = image_files.idx_header
  for content in [
    b'\x00\x00\x08',
    header((2, 2))[:-1],
    header((2, 2)) + bytes(3),
    header((2, 2)) + bytes(5),
    header((2, 2), element_type=13) + bytes(16),
    header((2**32 - 1,) * 3) + bytes(4),
  ]:
    path.write_bytes(gzip.compress(content))
    refusals.check(
      idx.read, [({'path': path}, sources.DataDamagedError, message)]
    )
