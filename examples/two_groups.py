"""Writes a table of two unlike groups of clients, one of them small.

  python examples/two_groups.py two_groups.csv

Eight clients ask for the sign of one feature, two for that of another one, each
with some noise, and all look alike to a model. So a model for the mean client
fails the two, and one for the worst client is right for three of four examples
of each. docs/methods/baselines.md compares methods on it.
"""

import sys

import numpy as np
import pandas as pd

CLIENTS = {'of_many': 8, 'of_few': 2}
EXAMPLES = 500  # Of each client.
NOISE = 0.3  # Standard deviation; that of features is 1.


def make_table(seed: int = 0) -> pd.DataFrame:
  """The examples of all clients, a row for each.

  Args:
    seed: Seed of the draws.

  Returns:
    The columns `client`, `first`, `second` and `label`.
  """
  rng = np.random.default_rng(seed)
  parts = []
  for group, (name, count) in enumerate(CLIENTS.items()):
    for i in range(count):
      x = rng.normal(size=[EXAMPLES, 2])
      score = x[:, group] + NOISE * rng.normal(size=EXAMPLES)
      parts.append(
        pd.DataFrame(
          {
            'client': f'{name}_{i}',
            'first': x[:, 0],
            'second': x[:, 1],
            'label': np.where(score > 0, 'yes', 'no'),
          }
        )
      )
  return pd.concat(parts, ignore_index=True)


if __name__ == '__main__':
  make_table().to_csv(sys.argv[1], index=False)
