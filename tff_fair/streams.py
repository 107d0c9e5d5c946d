"""Independent random streams of one seed.

A partition draws from the seed itself. Every other draw has its own stream, so
that no two draws with the same seed are correlated.
"""

import numpy as np

CLIENT_SPLIT = 1
SERVER_SPLIT = 2
BALANCE = 3
DATA_FRACTION = 4
EHR_SPLIT = 5
EHR_RECORDS = 6
SHIFT_DIRECTIONS = 7
SHIFT_CONTROL = 8
POOL_SPLIT = 9
UNSEEN = 10
ATTACKERS = 11


def generator(seed: int, *stream: int) -> np.random.Generator:
  """Returns a new generator at the beginning of a stream.

  Args:
    seed: Seed, at least 0.
    *stream: One of the streams above, then numbers that distinguish its draws.
  """
  sequence = np.random.SeedSequence(seed, spawn_key=stream)
  return np.random.default_rng(sequence)
