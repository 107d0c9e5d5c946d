"""Fairness measures and classification scores, as functions of NumPy arrays.

Nothing here imports TensorFlow, so that reports can use it.

Undefined scores are NaN, never 0. A client without test data has no score:
every measure over clients leaves NaN out, and is NaN if no score remains. The
argument `scores` of a measure is `float[k]`, a score for each client; anything
but a vector of numbers is a ValueError.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy import typing as npt

from tff_fair import checks

FEWEST_TEST_EXAMPLES = 10
"""The score of a client with fewer test examples says little of it alone."""

# Relative to the largest value; a few thousand times the rounding of one sum.
_ROUNDING = 1e-12
# Of the test whether a client is harmed.
_HARM_LEVEL = 0.05


class Interval(NamedTuple):
  """A mean with its 95 % interval."""

  mean: float
  low: float
  high: float


def confusion_matrices(
  labels: npt.ArrayLike,
  predictions: npt.ArrayLike,
  groups: npt.ArrayLike,
  num_classes: int,
  num_groups: int,
) -> np.ndarray:
  """Counts of (true, predicted) pairs within each group.

  Args:
    labels: `int[n]`, the true classes, 0..num_classes-1.
    predictions: `int[n]`, the predicted classes.
    groups: `int[n]`, the group (client) of each example, 0..num_groups-1.
    num_classes: Number of classes.
    num_groups: Number of groups.

  Returns:
    `int64[num_groups, num_classes, num_classes]`; rows are true classes.

  Raises:
    TypeError: If an argument is not of integers.
    ValueError: If a label, a prediction or a group is out of range, or they are
      not vectors of one length.
  """
  checks.check_integer('num_classes', num_classes, 1)
  checks.check_integer('num_groups', num_groups, 1)
  shape = (num_groups, num_classes, num_classes)
  names = ('groups', 'labels', 'predictions')
  parts = [
    _integers(name, values)
    for name, values in zip(names, (groups, labels, predictions), strict=True)
  ]
  # NumPy would broadcast a vector of length 1.
  if not parts[0].shape == parts[1].shape == parts[2].shape == (len(parts[0]),):
    raise ValueError(
      'groups, labels and predictions must be vectors of one length, found'
      f' shapes {", ".join(str(part.shape) for part in parts)}.'
    )
  for name, part, end in zip(names, parts, shape, strict=True):
    if part.size and not 0 <= part.min() <= part.max() < end:
      raise ValueError(
        f'{name} must lie in 0..{end - 1}, found {part.min()} to {part.max()}.'
      )
  flat = np.ravel_multi_index(parts, shape)
  return np.bincount(flat, minlength=np.prod(shape)).reshape(shape)


def macro_f1(
  confusion: npt.ArrayLike, *, own_labels: bool = False
) -> np.ndarray:
  """Macro-F1: the unweighted mean of the classes' `2TP / (2TP + FP + FN)`.

  The mean is over the classes that occur among the true or the predicted
  labels, as in scikit-learn. On a client of few classes a single stray
  prediction of another class then adds a 0 to the mean.

  Args:
    confusion: `int[..., C, C]`, rows are true classes.
    own_labels: Takes the mean over the true labels only. FeDABoost does not
      specify this; its published medians are of this size.

  Returns:
    float64, of the leading shape; NaN where there is no example.

  Raises:
    TypeError: If `confusion` is not of integers.
    ValueError: If it has another shape, or negative entries.
  """
  f1, true, both = _f1(_confusion(confusion))
  counted = (true if own_labels else both) > 0
  return _divide((f1 * counted).sum(axis=-1), counted.sum(axis=-1))


def weighted_f1(confusion: npt.ArrayLike) -> np.ndarray:
  """The mean of the classes' F1, weighted by their numbers of true examples.

  As scikit-learn's `average='weighted'`. FeDABoost's public code scores its
  clients like this.

  Args:
    confusion: `int[..., C, C]`, rows are true classes.

  Returns:
    float64, of the leading shape; NaN where there is no example.

  Raises:
    TypeError: If `confusion` is not of integers.
    ValueError: If it has another shape, or negative entries.
  """
  f1, true, _ = _f1(_confusion(confusion))
  return _divide((f1 * true).sum(axis=-1), true.sum(axis=-1))


def _f1(confusion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """The F1 of each class, its true examples, and these and the predicted."""
  hits = np.diagonal(confusion, axis1=-2, axis2=-1)
  true = confusion.sum(axis=-1)
  both = true + confusion.sum(axis=-2)  # 2TP + FP + FN
  f1 = np.divide(2 * hits, both, out=np.zeros(both.shape), where=both > 0)
  return f1, true, both


def accuracy(confusion: npt.ArrayLike) -> np.ndarray:
  """Share of correct predictions.

  Args:
    confusion: `int[..., C, C]`.

  Returns:
    float64, of the leading shape; NaN where there is no example.

  Raises:
    TypeError: If `confusion` is not of integers.
    ValueError: If it has another shape, or negative entries.
  """
  confusion = _confusion(confusion)
  hits = np.trace(confusion, axis1=-2, axis2=-1)
  return _divide(hits, confusion.sum(axis=(-2, -1)))


def minimum(scores: npt.ArrayLike) -> float:
  """The score of the worst client.

  Returns:
    The smallest score; NaN without any score.
  """
  scores = defined('scores', scores)
  return float(scores.min()) if scores.size else math.nan


def worst_mean(scores: npt.ArrayLike, share: float = 0.1) -> float:
  """Mean of the lowest scores, those of the worst 10 % of the clients.

  Args:
    scores: A score for each client.
    share: Share of the clients that count, in (0, 1]; `share * k` is rounded up
      to a whole number of clients.

  Returns:
    The mean of the `ceil(share * k)` lowest scores; NaN without any score.

  Raises:
    TypeError: If `share` is not a number.
    ValueError: If `share` is out of range.
  """
  scores = np.sort(defined('scores', scores))
  lowest = scores[: worst_count(scores.size, share)]
  with np.errstate(invalid='ignore'):  # inf - inf is NaN.
    return float(lowest.mean()) if lowest.size else math.nan


def worst_count(num_clients: int, share: float = 0.1) -> int:
  """The number of clients in a share of all, rounded up.

  Args:
    num_clients: The number of all clients.
    share: Their share, in (0, 1].

  Returns:
    `ceil(share * num_clients)`.

  Raises:
    TypeError: If `share` is not a number.
    ValueError: If `share` is out of range.
  """
  checks.check_positive('share', share, 1)
  # 0.07 * 100 is 7.000000000000001, of which the ceiling is 8.
  return math.ceil(round(share * num_clients, 9))


def variance(scores: npt.ArrayLike) -> float:
  """FeDABoost, equation 2: `(1/k) sum_i (phi_i - mean)^2`, population form.

  Returns:
    The variance; NaN without any score, or with an infinite one.
  """
  scores = defined('scores', scores)
  finite = scores.size and np.isfinite(scores).all()
  return float(np.var(scores)) if finite else math.nan


def entropy(scores: npt.ArrayLike) -> float:
  """Entropy of the clients' shares of the total score, in nats.

      -sum_i p_i ln p_i,  p_i = x_i / sum_j x_j,  0 ln 0 = 0

  Args:
    scores: x, `float[k]`, not negative; NaN is left out.

  Returns:
    ln(k) if all scores are equal, 0 if one client has everything; NaN (not
    defined) without a positive score, or with a negative or infinite one.
  """
  scores = _scaled(defined('scores', scores))
  if not scores.size:
    return math.nan
  shares = scores / scores.sum()
  logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
  return float(-(shares * logs).sum()) + 0.0  # Not -0.


def jain_index(scores: npt.ArrayLike) -> float:
  """Jain's fairness index, `(sum_i x_i)^2 / (k sum_i x_i^2)`.

  Args:
    scores: x, `float[k]`, not negative; NaN is left out.

  Returns:
    1 if all scores are equal, 1 / k if one client has everything; NaN (not
    defined) without a positive score, or with a negative or infinite one.
  """
  scores = _scaled(defined('scores', scores))
  if not scores.size:
    return math.nan
  return float(scores.sum() ** 2 / (scores.size * np.square(scores).sum()))


def mean_with_interval(values: npt.ArrayLike) -> Interval:
  """Mean over rounds with a 95 % interval, `mean +- 1.96 sd / sqrt(n)`.

  The standard deviation has `ddof=1`. FeDABoost reports such intervals of the
  fairness variance over a window of rounds, without a formula; this one is our
  choice.

  Args:
    values: `float[n]`, a value for each round; NaN is left out.

  Returns:
    `Interval(mean, low, high)`; `low` and `high` are NaN for fewer than two
    values, or with an infinite one.

  Raises:
    ValueError: If the values are not a vector of numbers.
  """
  values = defined('values', values)
  if not values.size:
    return Interval(*[math.nan] * 3)
  mean = float(values.mean())
  if values.size == 1 or not np.isfinite(values).all():
    return Interval(mean, math.nan, math.nan)
  half = float(1.96 * values.std(ddof=1) / np.sqrt(values.size))
  return Interval(mean, mean - half, mean + half)


def client_statistics(scores: npt.ArrayLike) -> dict[str, float]:
  """Computes statistics of the clients' scores, also of the worst clients.

  Returns:
    A dictionary with the keys `mean`, `median`, `min`, `worst10` (the mean of
    the worst 10 % of the clients, see `worst_mean`), `max`, `variance` and
    `jain` (see `jain_index`); NaN without any score.
  """
  scores = defined('scores', scores)
  mean, median, highest = (
    [float(reduce(scores)) for reduce in (np.mean, np.median, np.max)]
    if scores.size
    else [math.nan] * 3
  )
  return {
    'mean': mean,
    'median': median,
    'min': minimum(scores),
    'worst10': worst_mean(scores),
    'max': highest,
    'variance': variance(scores),
    'jain': jain_index(scores),
  }


def cf_coefficient(
  standalone: npt.ArrayLike, collaborative: npt.ArrayLike
) -> float:
  """Collaborative fairness: `100 * Pearson(Acc_s, Acc_p)` (CFFL, equation 4).

  Args:
    standalone: `float[k]`, each client's accuracy when it trains alone.
    collaborative: `float[k]`, each client's accuracy after federated training.

  Returns:
    A value in [-100, 100]; NaN (not defined) for fewer than two clients, a side
    without variance, or infinite accuracies. Values that differ by rounding
    alone, at most 1e-12 of the largest, have no variance. Clients with a NaN on
    either side are left out.

  Raises:
    ValueError: If the arguments differ in length, or are not vectors of
      numbers.
  """
  pair = _pair(standalone, collaborative)
  x, y = (a[~np.isnan(pair).any(axis=0)] for a in pair)
  if x.size < 2 or not np.isfinite([x, y]).all():
    return math.nan
  if _is_constant(x) or _is_constant(y):
    return math.nan
  return float(100 * np.corrcoef(x, y)[0, 1])


def harm_p_values(
  standalone: npt.ArrayLike,
  collaborative: npt.ArrayLike,
  num_examples: npt.ArrayLike,
) -> np.ndarray:
  """How likely chance alone makes each client so much worse than alone.

  Fisher's exact test, one-sided, of two shares of n test examples: `a` right
  ones alone and `b` together. If both models are right with one probability,
  then b, given a + b, is hypergeometric, and

      p = P(X <= b),  P(X = x) = C(n, x) C(n, a + b - x) / C(2n, a + b)

  A client is harmed if p is below 5 %. The test supposes two independent draws
  of n examples. Both models are tested on the same ones, so where they tend to
  err on the same, it finds fewer harmed clients than there are.

  Args:
    standalone: `float[k]`, each client's accuracy when it trains alone.
    collaborative: `float[k]`, each client's accuracy after federated training.
    num_examples: n, `int[k]`, each client's test examples; 0 if not known.

  Returns:
    p, `float64[k]`; NaN where a client has no accuracy or no test examples.
    Accuracies times n are rounded to whole examples, which changes only means
    over several evaluations.

  Raises:
    TypeError: If `num_examples` is not of integers.
    ValueError: If the arguments differ in length, or are not vectors of
      numbers, or an accuracy is outside 0..1.
  """
  # Takes a second to import.
  from scipy import stats

  pair = _pair(standalone, collaborative)
  sizes = _integers('num_examples', num_examples)
  if sizes.shape != pair[0].shape:
    raise ValueError(
      'num_examples must have an entry for each client, found shapes'
      f' {sizes.shape} and {pair[0].shape}.'
    )
  known = ~np.isnan(pair).any(axis=0) & (sizes > 0)
  scores, n = np.array(pair)[:, known], sizes[known]
  if n.size and not 0 <= scores.min() <= scores.max() <= 1:
    raise ValueError(
      'standalone and collaborative must be in 0..1 for a test, found'
      f' {scores.min():g} to {scores.max():g}.'
    )
  alone, together = np.rint(scores * n).astype(int)
  found = np.full(sizes.shape, np.nan)
  found[known] = stats.hypergeom.cdf(together, 2 * n, alone + together, n)
  return found


def against_alone(
  standalone: npt.ArrayLike,
  collaborative: npt.ArrayLike,
  num_examples: npt.ArrayLike | None = None,
) -> dict[str, float]:
  """Compares clients with training alone: order, gain and harm.

  The gain of a client is its accuracy together minus that alone. Its mean and
  its standard deviation are the collaboration gain and its spread of
  arXiv:2501.12344. They say what the CF coefficient does not: that is highest
  if all clients stay as they were alone.

  Args:
    standalone: `float[k]`, each client's accuracy when it trains alone.
    collaborative: `float[k]`, each client's accuracy after federated training.
    num_examples: `int[k]`, each client's test examples; 0, or None for all, if
      not known.

  Returns:
    `cf`, the CF coefficient; `better_off`, the share of the clients with a gain
    above 0; `gain_mean`, `gain_sd` (population form) and `gain_min`; `harmed`,
    the number of clients with a p value of `harm_p_values` below 5 %, and
    `harmed_share`, their share of those that have one. Of clients that nobody
    harms, up to 5 % are expected among them. NaN is not defined; clients with a
    NaN on either side are left out.

  Raises:
    TypeError: As `harm_p_values`.
    ValueError: Likewise.
  """
  pair = _pair(standalone, collaborative)
  gains = pair[1] - pair[0]
  gains = gains[~np.isnan(gains)]
  if num_examples is None:
    num_examples = np.zeros(pair[0].shape, int)
  tested = defined('p', harm_p_values(*pair, num_examples))
  harmed = tested < _HARM_LEVEL
  return {
    'cf': cf_coefficient(*pair),
    'better_off': _mean(gains > 0),
    'gain_mean': _mean(gains),
    'gain_sd': math.sqrt(variance(gains)),
    'gain_min': minimum(gains),
    'harmed': float(harmed.sum()) if harmed.size else math.nan,
    'harmed_share': _mean(harmed),
  }


def defined(name: str, values: npt.ArrayLike) -> np.ndarray:
  """The values other than NaN.

  Args:
    name: Their name in the error message.
    values: `float[k]`; NaN is left out.

  Returns:
    `float64[n]`.

  Raises:
    ValueError: If they are not a vector of numbers.
  """
  values = _vector(name, values)
  return values[~np.isnan(values)]


def _scaled(scores) -> np.ndarray:
  """Scores times a power of 2, so that squares are in range; exact.

  Returns:
    The scores, the largest in [0.5, 1); empty if shares of their sum are not
    defined.
  """
  if not scores.size or not scores.max() > 0 or scores.min() < 0:
    return np.zeros(0)
  if not np.isfinite(scores).all():
    return np.zeros(0)
  return np.ldexp(scores, -np.frexp(scores.max())[1])


def _pair(standalone, collaborative) -> tuple[np.ndarray, np.ndarray]:
  """Both accuracies of each client."""
  pair = (
    _vector('standalone', standalone),
    _vector('collaborative', collaborative),
  )
  if pair[0].shape != pair[1].shape:
    raise ValueError(
      'standalone and collaborative must have an entry for each client;'
      f' found shapes {pair[0].shape} and {pair[1].shape}.'
    )
  return pair


def _mean(values) -> float:
  return float(values.mean()) if values.size else math.nan


def _is_constant(values) -> bool:
  """Returns whether values, at least one, differ by rounding alone."""
  return np.ptp(values) <= _ROUNDING * np.abs(values).max()


def _vector(name, values) -> np.ndarray:
  values = np.asarray(values)
  if values.dtype.kind not in 'biuf' or values.ndim != 1:
    raise ValueError(f'{name} must be a vector of numbers, found {values!r}.')
  return values.astype(np.float64)


def _integers(name, values) -> np.ndarray:
  values = np.asarray(values)
  if values.size and values.dtype.kind not in 'biu':
    raise TypeError(f'{name} must be integers, found dtype {values.dtype}.')
  return np.atleast_1d(values).astype(np.int64)


def _confusion(confusion) -> np.ndarray:
  confusion = np.asarray(confusion)
  if confusion.dtype.kind not in 'iu':
    raise TypeError(
      f'confusion must be integers, found dtype {confusion.dtype}.'
    )
  shape = confusion.shape
  if len(shape) < 2 or shape[-1] != shape[-2] or (confusion < 0).any():
    raise ValueError(
      'confusion must have the shape [..., C, C] and no negative entry, found'
      f' the shape {list(shape)} and at least {confusion.min(initial=0)}.'
    )
  return confusion


def _divide(numerator, denominator) -> np.ndarray:
  """The quotient in float64, NaN where the denominator is 0."""
  denominator = np.asarray(denominator, np.float64)
  undefined = np.full(denominator.shape, np.nan)
  return np.divide(numerator, denominator, out=undefined, where=denominator > 0)
