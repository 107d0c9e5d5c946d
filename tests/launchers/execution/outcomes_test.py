"""What a comparison keeps of a run, whole and damaged."""

import json
import os

from tff_fair.launchers.execution import outcomes


def test_what_is_damaged_is_no_outcome(tmp_path):
  path = tmp_path / 'compared.json'
  assert outcomes.read(tmp_path) is None
  outcome = outcomes.Outcome(outcomes.FINISHED, '', 0.5, 1, 2, None)
  outcomes.write(outcome, tmp_path)
  assert outcomes.read(tmp_path) == outcome
  whole = path.read_text()
  found = json.loads(whole)
  for content in (
    '',
    whole[: len(whole) // 2],
    whole.replace('0.5', 'null'),
    whole.replace('0.5', '0.6'),
    '[]',
    2000 * '[',
    json.dumps({**found, 'status': 'lost'}),
    json.dumps({**found, 'more': 1}),
  ):
    path.write_text(content)
    assert outcomes.read(tmp_path) is None
  # An older version wrote no checksum.
  path.write_text(json.dumps(outcome._asdict()))
  assert outcomes.read(tmp_path) == outcome
  path.unlink()
  os.mkfifo(path)
  assert outcomes.read(tmp_path) is None
