"""Integer sizes of clients from real-valued shares."""

import numpy as np


def largest_remainder(shares: np.ndarray, total: int) -> np.ndarray:
  """Divides `total` units in proportion to `shares`, at least one unit each.

  With the shares normalised to sum to 1, client `k` gets
  `floor(share_k * total + 1e-9)` units; the missing units go to the largest
  fractional parts, the lowest client first among equals. Then every size below
  1 is lifted to 1 by taking from the largest.

  Args:
    shares: [K] real, not negative, with a positive sum.
    total: The units to divide, at least `K`.

  Returns:
    int64 [K] that sums to `total`.
  """
  exact = shares / shares.sum() * total
  sizes = np.floor(exact + 1e-9).astype(np.int64)
  # Rounded, so that shares that are equal on paper tie in floating point too.
  fractions = np.round(exact - sizes, 9)
  order = np.argsort(-fractions, kind='stable')
  sizes[order[: total - sizes.sum()]] += 1
  return lift(sizes, 1)


def lift(sizes: np.ndarray, minimum: int) -> np.ndarray:
  """Raises every size to `minimum` by taking single units from the largest.

  The sizes must sum to at least `minimum` for each.
  """
  sizes = np.array(sizes, np.int64)
  for k in np.flatnonzero(sizes < minimum):
    while sizes[k] < minimum:
      sizes[np.argmax(sizes)] -= 1
      sizes[k] += 1
  return sizes
