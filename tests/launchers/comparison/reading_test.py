"""The two files of a comparison, damaged."""

import json
import random

import pytest

from tests.launchers.comparison import made_comparison
from tff_fair.launchers.comparison import reading


def _mutations(whole, number=60):
  """Cuts, changed and repeated parts of a file."""
  rng = random.Random(0)
  yield b''
  for _ in range(number):
    at, other = sorted(rng.sample(range(len(whole)), 2))
    yield whole[:at]
    yield whole[:at] + whole[other:]
    yield whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
  lines = whole.splitlines(keepends=True)
  yield from (b''.join(lines[:end]) for end in range(1, len(lines)))


def test_any_change_is_found_and_names_the_file(tmp_path):
  paths = made_comparison.write(tmp_path)
  reading.read(*paths)
  for path in paths:
    whole = path.read_bytes()
    for content in _mutations(whole):
      path.write_bytes(content)
      # What JSON does not see, such as a blank, is no change, and without the
      # key of the checksums it is a file of an older version.
      if path.suffix == '.json' and _same(content, whole):
        continue
      with pytest.raises(reading.ComparisonError) as error:
        reading.read(*paths)
      assert str(path) in str(error.value)
      assert '\n' not in str(error.value)
    # Git may write other ends of lines.
    path.write_bytes(whole.replace(b'\n', b'\r\n'))
    reading.read(*paths)
    path.write_bytes(whole)


def _same(content, whole):
  try:
    found = json.loads(content)
    return found == json.loads(whole) or 'checksums' not in found
  except ValueError:
    return False


def test_files_of_an_older_version_have_no_checksums(tmp_path):
  paths = made_comparison.write(tmp_path)
  facts = json.loads(paths[1].read_text())
  del facts['checksums']
  paths[1].write_text(json.dumps(facts))
  assert reading.read(*paths)[1] == facts
  paths[0].write_text('method,seed\nfed_avg,0\n')
  with pytest.raises(reading.ComparisonError, match="no column 'trial'"):
    reading.read(*paths)
