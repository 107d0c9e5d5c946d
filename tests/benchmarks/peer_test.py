"""Rounds of a process that is not ours."""

import os

import numpy as np
import pytest

from benchmarks import peer

# Writes what it got, and runs two rounds.
_SCRIPT = """
import json, sys
import numpy as np
path, *arguments = sys.argv[1:]
with open(arguments.pop(), 'w') as file:
  json.dump([np.load(path)['x'].tolist(), arguments], file)
for _ in range(2):
  sys.stdin.readline()
  print('done', flush=True)
"""
_UV = """#!/bin/sh
[ "$1 $2 $3" = "run --quiet --script" ] || exit 1
shift 3
exec python "$@"
"""


def test_a_round_for_each_call_until_it_ends(monkeypatch, tmp_path):
  (tmp_path / 'script.py').write_text(_SCRIPT)
  (tmp_path / 'uv').write_text(_UV)
  (tmp_path / 'uv').chmod(0o755)
  monkeypatch.setattr(peer, '_SCRIPTS', tmp_path)
  monkeypatch.setenv('PATH', f'{tmp_path}:{os.environ["PATH"]}')
  found = tmp_path / 'found.json'
  run_round = peer.Peer('script.py', {'x': np.arange(3)}, (7, 0.5, found))
  run_round()
  run_round()
  assert found.read_text() == '[[0, 1, 2], ["7", "0.5"]]'
  with pytest.raises(peer.PeerError, match=r'script.py must run a round'):
    run_round()


def test_without_uv(monkeypatch, tmp_path):
  monkeypatch.setenv('PATH', str(tmp_path))
  with pytest.raises(peer.PeerError, match='found no such command'):
    peer.Peer('script.py', {}, ())()
