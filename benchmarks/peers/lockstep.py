"""Parts that the scripts of all peers share: arguments, data, lock step."""

from collections.abc import Iterator
import functools
import os
import sys
from typing import NamedTuple

import numpy as np


class Work(NamedTuple):
  """The request of `benchmarks.peer` to a script: a model, and its training."""

  path: str
  model: str
  cohort: int
  local_epochs: int
  batch_size: int
  rate: float


def work() -> Work:
  """Reads the arguments of the script."""
  types = Work.__annotations__.values()
  return Work(*(t(v) for t, v in zip(types, sys.argv[1:], strict=True)))


@functools.cache
def clients(path: str) -> tuple[np.ndarray, np.ndarray]:
  """The examples: `x` [clients, examples, ...] and `y` [clients, examples]."""
  with np.load(path) as arrays:
    return arrays['x'], arrays['y']


def rounds() -> Iterator[int]:
  """Yields the number of a round for each line read, then answers it.

  The answer to a round is written when the next one is asked for. From now on,
  what else is printed goes to the standard error.
  """
  answers = os.fdopen(os.dup(sys.stdout.fileno()), 'w')
  os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
  return _rounds(answers)


def _rounds(answers):
  for number, _ in enumerate(sys.stdin):
    yield number
    print('done', file=answers, flush=True)
