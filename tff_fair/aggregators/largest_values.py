"""Sparse updates: clients send only the entries of largest magnitude.

The "largest values" criterion of Shokri and Shmatikov, "Privacy-Preserving Deep
Learning" (CCS 2015), which CFFL uses for uploads and for allocations.
"""

import collections
import dataclasses
from typing import Annotated, Any, Literal, get_args

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.annotations import Limits
from tff_fair.tensors import flat
from tff_fair.tensors import summable

# The 31 bits of a float32 that is not negative, as digits from the highest.
_DIGIT_WIDTHS = (11, 10, 10)

Ties = Literal['index', 'keep']
TIES = get_args(Ties)


def num_kept(fraction: float, size: int, minimum: int = 1) -> int:
  """`max(minimum, floor(fraction * size + 1e-9))`, at most `size`."""
  # The small term keeps products such as 0.29 * 100 = 28.999... whole.
  return min(size, max(minimum, int(fraction * size + 1e-9)))


def keep_largest(
  vector: Any, count: Any, *, ties: Ties = 'index', ranking: Any = None
) -> tf.Tensor:
  """The `count` entries of largest magnitude, and 0 elsewhere.

  The cut-off is found by selection, in time linear in the size; nothing is
  sorted.

  Args:
    vector: `float32[d]`, d at least 1; NaN counts as infinite, so that it is
      kept and the next step can detect it.
    count: int32 scalar; below 0 counts as 0 and above `d` as `d`.
    ties: Which entries to keep if several magnitudes equal the cut-off:
      'index' keeps those of lowest index, so that exactly `count` entries are
      kept; 'keep' keeps all of them, so possibly more than `count`, but nothing
      if `count` is 0.
    ranking: `float32[d]`, ranks the entries by its magnitudes instead of those
      of `vector`; or None.

  Returns:
    Like `vector`.

  Raises:
    TypeError: If the entries are ranked by another type.
    ValueError: If `ties` is unknown.
  """
  checks.check_choice('ties', ties, TIES)
  magnitudes = _magnitudes(vector if ranking is None else ranking)
  if magnitudes.dtype != tf.float32:
    raise TypeError(
      f'Entries must be ranked by float32, found {magnitudes.dtype.name}.'
    )
  count = tf.minimum(count, tf.size(magnitudes))
  cut_off = _nth_smallest(
    magnitudes, tf.size(magnitudes) - tf.maximum(count, 1)
  )
  kept = magnitudes > cut_off
  at_cut_off = tf.equal(magnitudes, cut_off)
  if ties == 'index':
    missing = count - tf.math.count_nonzero(kept, dtype=tf.int32)
    at_cut_off = _first(at_cut_off, missing)
  kept = (kept | at_cut_off) & (count > 0)
  return tf.where(kept, vector, tf.zeros_like(vector))


def keep_largest_of_each(
  vector: Any, counts: Any, *, ties: Ties = 'index'
) -> tf.Tensor:
  """`keep_largest` for counts `[m]`, with a single sort: `[m, d]`."""
  checks.check_choice('ties', ties, TIES)
  magnitudes = _magnitudes(vector)
  order = tf.argsort(magnitudes, direction='DESCENDING', stable=True)
  if ties == 'index':
    # `invert_permutation` has no kernel for GPUs; float64 is exact here.
    size = tf.size(order)
    ranks = tf.math.unsorted_segment_sum(
      tf.range(tf.cast(size, tf.float64)), order, size
    )
    kept = ranks < tf.cast(counts, tf.float64)[:, tf.newaxis]
  else:
    last = tf.gather(order, tf.clip_by_value(counts, 1, tf.size(order)) - 1)
    cut_offs = tf.gather(magnitudes, last)[:, tf.newaxis]
    kept = (magnitudes >= cut_offs) & (counts > 0)[:, tf.newaxis]
  return tf.where(kept, vector, tf.zeros_like(vector))


@dataclasses.dataclass(eq=False, repr=False)
class LargestValuesFactory(factory.Factory):
  """Clients send only the largest entries of their values.

  A client's value is flattened to one vector of `d` entries (variables in their
  order, each row-major). The `max(minimum, floor(fraction * d + 1e-9))` entries
  of largest magnitude are kept, the others become 0, and the inner process
  aggregates the sparse values. In a pipeline, factories around this one (such
  as clipping) act before the selection, the inner factory after it.

  If a client's value or weight is not finite, or the product of the two too
  large (`summable.LARGEST`), the inner process receives zeros with a weight of
  zeros; integers in the weight are kept.

  The created process has the state and the result of the inner process, and its
  weight type is the inner one's. Measurements: `num_non_finite`, the number of
  such clients, and `inner_agg`, the measurements of the inner process.

  Args:
    fraction: theta_u, the fraction of entries to send, in (0, 1].
    inner_agg_factory: Aggregates the sparse values, and takes weights of any
      type that it is given; None for
      `tff.aggregators.MeanFactory(no_nan_division=True)`, whose result is 0
      without clients.
    minimum: Smallest number of entries to send.
    ties: As in `keep_largest`.
  """

  fraction: Annotated[float, Limits(above=0, maximum=1)]
  inner_agg_factory: tff.aggregators.WeightedAggregationFactory | None = None
  _: dataclasses.KW_ONLY
  minimum: Annotated[int, Limits(minimum=0)] = 1
  ties: Ties = 'index'

  def _create(self, value_type, weight_type):
    inner = factory.create_mean(self.inner_agg_factory, value_type, weight_type)

    @tff.tensorflow.computation(value_type, weight_type)
    def sparsify(value, weight):
      usable = summable.is_summable(value, weight)
      vector = flat.flatten(value)
      count = num_kept(self.fraction, vector.shape[0], self.minimum)
      sparse = keep_largest(vector, count, ties=self.ties)
      return collections.OrderedDict(
        value=gathered.zeros_unless(usable, flat.unflatten(sparse, value)),
        weight=gathered.zeros_unless(usable, weight),
        non_finite=tf.cast(~usable, tf.int32),
      )

    def next_fn(state, value, weight):
      # Client computation.
      clients = tff.federated_map(sparsify, (value, weight))
      # Inner aggregation.
      output = inner.next(state, clients.value, clients.weight)
      # Output preparation.
      measurements = collections.OrderedDict(
        num_non_finite=tff.federated_sum(clients.non_finite),
        inner_agg=output.measurements,
      )
      return output.state, output.result, measurements

    return factory.build_process(
      inner.initialize, next_fn, value_type, weight_type
    )


def _magnitudes(vector) -> tf.Tensor:
  magnitudes = tf.abs(vector)
  # Comparisons with NaN are false, so it would rank among the smallest.
  infinity = tf.constant(np.inf, magnitudes.dtype)
  return tf.where(tf.math.is_nan(magnitudes), infinity, magnitudes)


def _nth_smallest(values: tf.Tensor, n: Any) -> tf.Tensor:
  """The entry that has `n` entries before it in ascending order.

  Floats that are not negative are in the order of their bits, read as integers.
  So their digits are found one after the other, from the highest: each digit
  takes a histogram of the entries that have the same digits before it.
  `tf.raw_ops.NthElement` would do the same, but has no kernel for GPUs.
  """
  rest = tf.bitcast(values, tf.int32)
  found, shift = tf.constant(0), sum(_DIGIT_WIDTHS)
  n = tf.cast(n, tf.int64)  # Arithmetic of int32 is on the host.
  for width in _DIGIT_WIDTHS:
    shift -= width
    # Entries with other digits before this one are beyond the histogram.
    counts = tf.raw_ops.Bincount(
      arr=tf.bitwise.right_shift(rest, shift) if shift else rest,
      size=2**width,
      weights=tf.zeros([0], tf.int32),
    )
    up_to = tf.cast(tf.cumsum(counts), tf.int64)
    digit = tf.math.count_nonzero(up_to <= n, dtype=tf.int32)
    n -= tf.gather(up_to - tf.cast(counts, tf.int64), digit)
    digit = tf.bitwise.left_shift(digit, shift)
    rest = tf.bitwise.bitwise_xor(rest, digit)
    found = tf.bitwise.bitwise_or(found, digit)
  return tf.bitcast(found, tf.float32)


def _first(mask: tf.Tensor, number: Any) -> tf.Tensor:
  """The mask of the first `number` entries of a mask, at least of one."""
  places = tf.where(mask)[:, 0]
  last = tf.clip_by_value(number, 1, tf.size(places)) - 1
  end = tf.gather(places, last) + 1
  first = tf.concat([mask[:end], tf.zeros_like(mask[end:])], axis=0)
  first.set_shape(mask.shape)  # `tf.ensure_shape` would copy it to the host.
  return first
