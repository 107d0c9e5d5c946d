"""Rounds of a process that is not ours."""

import json
import os
import shutil

import numpy as np
import pytest

from benchmarks import peer
from benchmarks import run

# Writes what it got, prints more than answers, and runs two rounds.
_SCRIPT = """
import json, pathlib, sys
import lockstep
work = lockstep.work()
x, y = lockstep.clients(work.path)
found = [x.tolist(), y.tolist(), *work[1:]]
for number in lockstep.rounds():
  if number == 2:
    sys.exit()
  print('noise', flush=True)
  pathlib.Path(__file__).with_suffix('.json').write_text(json.dumps(found))
"""
_UV = """#!/bin/sh
[ "$1 $2 $3" = "run --quiet --script" ] || exit 1
shift 3
exec python "$@"
"""


def test_a_round_for_each_call_until_it_ends(monkeypatch, tmp_path):
  (tmp_path / 'script.py').write_text(_SCRIPT)
  shutil.copy(peer._SCRIPTS / 'lockstep.py', tmp_path)
  (tmp_path / 'uv').write_text(_UV)
  (tmp_path / 'uv').chmod(0o755)
  monkeypatch.setattr(peer, '_SCRIPTS', tmp_path)
  monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
  arrays = {'x': np.arange(3), 'y': np.arange(2)}
  run_round = peer.Peer('script.py', arrays, ('model', 7, 2, 10, 0.5))
  run_round()
  run_round()
  found = json.loads((tmp_path / 'script.json').read_text())
  assert found == [[0, 1, 2], [0, 1], 'model', 7, 2, 10, 0.5]
  with pytest.raises(peer.PeerError, match=r'script.py must run a round'):
    run_round()


def test_without_uv(monkeypatch, tmp_path):
  monkeypatch.setenv('PATH', str(tmp_path))
  with pytest.raises(peer.PeerError, match='found no such command'):
    peer.Peer('script.py', {}, ())()


def test_peers_of_known_workloads_have_scripts():
  assert {*peer.OF_WORKLOADS} <= {*run.WORKLOADS}
  for name in peer.NAMES:
    script = peer._SCRIPTS / f'{name}_rounds.py'
    assert script.read_text().startswith('# /// script\n# requires-python')
