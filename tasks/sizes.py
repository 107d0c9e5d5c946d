"""Integer sizes of clients from real-valued shares."""

import numpy as np

from tff_fair import checks


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

  Raises:
    TypeError: If `total` is not an integer or `shares` are not real numbers.
    ValueError: If the shares are not a vector of the required values, or if
      `total` is below their number.
  """
  shares = _check_shares(shares)
  checks.check_integer('total', total, len(shares))
  exact = shares / shares.sum() * total
  sizes = np.floor(exact + 1e-9).astype(np.int64)
  # Rounded, so that shares that are equal on paper tie in floating point too.
  fractions = np.round(exact - sizes, 9)
  order = np.argsort(-fractions, kind='stable')
  sizes[order[: total - sizes.sum()]] += 1
  return lift(sizes, 1)


def lift(sizes: np.ndarray, minimum: int) -> np.ndarray:
  """Raises every size to `minimum` by taking single units from the largest.

  Args:
    sizes: int64 [K] that sums to at least `K * minimum`.
    minimum: The least size of the result.

  Returns:
    int64 [K] with the same sum.

  Raises:
    ValueError: If the sizes sum to less.
  """
  sizes = np.array(sizes, np.int64)
  if sizes.sum() < len(sizes) * minimum:
    raise ValueError(
      f'sizes must sum to at least {len(sizes) * minimum}, found {sizes.sum()}.'
    )
  for k in np.flatnonzero(sizes < minimum):
    while sizes[k] < minimum:
      sizes[np.argmax(sizes)] -= 1
      sizes[k] += 1
  return sizes


def _check_shares(shares: np.ndarray) -> np.ndarray:
  shares = np.asarray(shares)
  if shares.dtype.kind not in 'iuf':
    raise TypeError(f'shares must be real numbers, found {shares.dtype}.')
  if shares.ndim != 1 or not shares.size:
    raise ValueError(
      'shares must be a vector of at least one share, found shape '
      f'{shares.shape}.'
    )
  shares = shares.astype(np.float64)
  if not (np.isfinite(shares).all() and shares.min() >= 0 and shares.any()):
    raise ValueError(
      'shares must be finite, not negative and not all zero, found values '
      f'from {shares.min()} to {shares.max()}.'
    )
  return shares
