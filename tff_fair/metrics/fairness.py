"""The papers' metrics, as pure functions of NumPy arrays.

NaN stands for "undefined", never 0: a client without test data has no score,
and statistics over clients leave it out.
"""

from typing import Any, NamedTuple

import numpy as np

from tff_fair import checks


class Interval(NamedTuple):
  """A mean with its 95 % interval."""

  mean: float
  low: float
  high: float


def confusion_matrices(
  labels: Any, predictions: Any, groups: Any, num_classes: int, num_groups: int
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
  # NumPy would stretch a vector of length 1 to the others.
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


def macro_f1(confusion: Any, *, own_labels: bool = False) -> np.ndarray:
  """Macro-F1: the unweighted mean of the classes' `2TP / (2TP + FP + FN)`.

  The mean is over the classes that occur among the true or the predicted
  labels, as in scikit-learn. On a client of few classes a single stray
  prediction of another class then adds a 0 to the mean.

  Args:
    confusion: `int[..., C, C]`, rows are true classes.
    own_labels: Takes the mean over the true labels alone. FeDABoost does not
      say which; its published medians have the size of this one.

  Returns:
    float64, of the leading shape; NaN where there is no example.

  Raises:
    TypeError: If `confusion` is not of integers.
    ValueError: If it has another shape, or negative entries.
  """
  confusion = _confusion(confusion)
  hits = np.diagonal(confusion, axis1=-2, axis2=-1)
  true = confusion.sum(axis=-1)
  both = true + confusion.sum(axis=-2)  # 2TP + FP + FN
  f1 = np.divide(2 * hits, both, out=np.zeros(both.shape), where=both > 0)
  counted = (true if own_labels else both) > 0
  return _divide((f1 * counted).sum(axis=-1), counted.sum(axis=-1))


def accuracy(confusion: Any) -> np.ndarray:
  """Share of right predictions.

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


def fairness_variance(scores: Any) -> float:
  """FeDABoost, equation 2: `(1/k) sum_i (phi_i - mean)^2`, population form.

  Args:
    scores: `float[k]`, a score for each client; NaN is left out.

  Returns:
    The variance, or NaN without any score, or with an infinite one.

  Raises:
    ValueError: If the scores are not a vector of numbers.
  """
  scores = defined('scores', scores)
  finite = scores.size and np.isfinite(scores).all()
  return float(np.var(scores)) if finite else float('nan')


def mean_with_interval(values: Any) -> Interval:
  """Mean over rounds with a 95 % interval, `mean +- 1.96 sd / sqrt(n)`.

  The standard deviation has `ddof=1`. FeDABoost prints such intervals for the
  fairness variance in a window of rounds and does not say how they are formed;
  this is our choice.

  Args:
    values: `float[n]`, a value for each round; NaN is left out.

  Returns:
    `Interval(mean, low, high)`; the ends are NaN for fewer than two values,
    or an infinite one.

  Raises:
    ValueError: If the values are not a vector of numbers.
  """
  values = defined('values', values)
  if not values.size:
    return Interval(*[float('nan')] * 3)
  mean = float(values.mean())
  if values.size == 1 or not np.isfinite(values).all():
    return Interval(mean, float('nan'), float('nan'))
  half = float(1.96 * values.std(ddof=1) / np.sqrt(values.size))
  return Interval(mean, mean - half, mean + half)


def client_statistics(scores: Any) -> dict[str, float]:
  """Median, maximum, mean and variance of the clients' scores.

  Args:
    scores: `float[k]`, a score for each client; NaN is left out.

  Returns:
    A dictionary with keys `mean`, `median`, `max` and `variance`; NaN without
    any score.

  Raises:
    ValueError: If the scores are not a vector of numbers.
  """
  scores = defined('scores', scores)
  if not scores.size:
    return dict.fromkeys(('mean', 'median', 'max', 'variance'), float('nan'))
  return {
    'mean': float(scores.mean()),
    'median': float(np.median(scores)),
    'max': float(scores.max()),
    'variance': fairness_variance(scores),
  }


def cf_coefficient(standalone: Any, collaborative: Any) -> float:
  """Collaborative fairness: `100 * Pearson(Acc_s, Acc_p)` (CFFL, equation 4).

  Args:
    standalone: `float[k]`, each client's accuracy when it trains alone.
    collaborative: `float[k]`, its accuracy after the collaboration.

  Returns:
    A value in [-100, 100]; NaN (undefined) for fewer than two clients, a side
    without variance, or infinite accuracies. Clients with a NaN on either side
    are left out.

  Raises:
    ValueError: If the arguments differ in length, or are not vectors of
      numbers.
  """
  pair = [
    _vector('standalone', standalone),
    _vector('collaborative', collaborative),
  ]
  if pair[0].shape != pair[1].shape:
    raise ValueError(
      'standalone and collaborative must have an entry for each client;'
      f' found shapes {pair[0].shape} and {pair[1].shape}.'
    )
  x, y = (a[~np.isnan(pair).any(axis=0)] for a in pair)
  if x.size < 2 or not np.isfinite([x, y]).all():
    return float('nan')
  if np.ptp(x) == 0 or np.ptp(y) == 0:
    return float('nan')
  return float(100 * np.corrcoef(x, y)[0, 1])


def defined(name: str, values: Any) -> np.ndarray:
  """The values that are defined.

  Args:
    name: What the message calls them.
    values: `float[k]`; NaN is left out.

  Returns:
    `float64[n]`.

  Raises:
    ValueError: If they are not a vector of numbers.
  """
  values = _vector(name, values)
  return values[~np.isnan(values)]


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
