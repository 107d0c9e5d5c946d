"""Rounds of another simulator, in a process and an environment of its own."""

from collections.abc import Mapping, Sequence
import pathlib
import subprocess
import tempfile
import weakref

import numpy as np

# Workload -> the peers that run it, too.
OF_WORKLOADS = {
  'cross_device': ('fedjax',),
  'pfl_cifar10': ('pfl', 'flower', 'fedjax'),
  'blazefl': ('flower',),
}
NAMES = tuple(dict.fromkeys(sum(OF_WORKLOADS.values(), ())))

_SCRIPTS = pathlib.Path(__file__).parent / 'peers'


class PeerError(Exception):
  """The process of a peer has ended, or could not start."""


class Peer:
  """A round of a script in `benchmarks/peers` per call.

  The script gets the same arrays as ours, by a file. `uv run` makes the
  environment that it names, at the first call.
  """

  def __init__(
    self,
    script: str,
    arrays: Mapping[str, np.ndarray],
    arguments: Sequence[object],
  ) -> None:
    """Starts nothing yet."""
    self._script = script
    self._arrays = arrays
    self._arguments = arguments
    self._process: subprocess.Popen | None = None

  def __call__(self) -> None:
    """Runs a round.

    Raises:
      PeerError: If the process has ended.
    """
    if self._process is None:
      self._process = self._start()
    try:
      self._process.stdin.write('next\n')
      self._process.stdin.flush()
    except BrokenPipeError:
      pass  # What it wrote says more.
    if not self._process.stdout.readline():
      raise PeerError(
        f'{self._script} must run a round, found that it has ended; see what'
        ' it wrote above.'
      )

  def _start(self):
    folder = tempfile.TemporaryDirectory()
    weakref.finalize(self, folder.cleanup)
    path = pathlib.Path(folder.name) / 'clients.npz'
    np.savez(path, **self._arrays)
    # It ends with its input, so with this process.
    command = ['uv', 'run', '--quiet', '--script', _SCRIPTS / self._script]
    try:
      return subprocess.Popen(
        [*command, path, *map(str, self._arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
      )
    except FileNotFoundError as error:
      raise PeerError(
        f'{self._script} must be run by `uv`, found no such command.'
      ) from error
