"""What a comparison says of every method: the columns of its tables."""

from typing import NamedTuple


class Measure(NamedTuple):
  """One measure of a run.

  Attributes:
    column: Its column in compare.csv; `seconds_ratio` is computed from
      `seconds_per_round`, and `worst10_by_chance` by `client_scores`.
    title: The heading of its column.
    short: Its name in a sentence.
    higher: Whether higher is better; None for what is told, not ranked.
    digits: Digits after the decimal point.
    unit: Its unit, or nothing.
    is_cost: Whether it is a cost.
  """

  column: str
  title: str
  short: str
  higher: bool | None
  digits: int
  unit: str = ''
  is_cost: bool = False


MEASURES = (
  Measure('client_accuracy_mean', 'Mean accuracy', 'mean accuracy', True, 3),
  Measure(
    'client_accuracy_worst10', 'Worst 10 % of clients', 'worst 10 %', True, 3
  ),
  Measure('worst10_by_chance', 'The same by chance', 'chance', None, 3),
  Measure('client_accuracy_min', 'Worst client', 'worst client', True, 3),
  Measure('client_accuracy_variance', 'Variance', 'variance', False, 4),
  Measure('client_accuracy_jain', 'Jain’s index', 'Jain’s index', True, 3),
  Measure('client_f1_mean', 'Macro-F1', 'macro-F1', True, 3),
  Measure('cf', 'CF coefficient', 'CF coefficient', True, 1),
  Measure(
    'better_off',
    'Better off than alone',
    'share of better-off clients',
    True,
    2,
  ),
  Measure(
    'global_accuracy', 'Global model', 'accuracy of the global model', True, 3
  ),
  Measure(
    'rounds_to_target', 'Rounds to target', 'rounds to the target', False, 1
  ),
  Measure(
    'bytes_down',
    'Bytes down a round',
    'bytes down a round',
    None,
    0,
    'bytes',
    is_cost=True,
  ),
  Measure(
    'bytes_up',
    'Bytes up a round',
    'bytes up a round',
    None,
    0,
    'bytes',
    is_cost=True,
  ),
  Measure(
    'seconds_ratio',
    'Seconds a round, by the baseline’s',
    'seconds a round, by the baseline’s',
    None,
    2,
    is_cost=True,
  ),
)
"""All measures, in the order of the tables."""

BY_COLUMN = {measure.column: measure for measure in MEASURES}
"""Column -> its measure."""
