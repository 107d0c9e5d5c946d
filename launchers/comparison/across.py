"""Compares methods across several comparisons, by Wilcoxon's signed-rank test.

A block is a data set with a seed. Data sets differ in the spread of their
numbers, so ranks are tested and not means; the ranks are those of all blocks
together, so a data set of large differences still counts for more. Each method
is tested against the baseline alone: in tests of mean ranks, such as Nemenyi's,
the verdict on two methods depends on the others (Benavoli, Corani and Mangili,
2016). Seeds of one data set share its examples: what is found holds of these
data sets, and is no evidence about others.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tff_fair.launchers import measures
from tff_fair.launchers import statistics
from tff_fair.launchers.comparison import analysis as analysis_lib

FEWEST_SEEDS = 5
"""A comparison of fewer seeds does not take part."""


class Difference(NamedTuple):
  """The differences of a method to the baseline, over all blocks.

  Attributes:
    medians: Over the seeds of each comparison, in the measure itself; above 0
      if the method is higher.
    p_value: Of the signed-rank test, corrected for the number of methods
      (Holm).
    verdict: 1 if the method is separably better, -1 if worse, otherwise 0.
  """

  medians: tuple[float, ...]
  p_value: float
  verdict: int


def with_enough_seeds(
  analyses: Mapping[str, analysis_lib.Analysis],
) -> dict[str, analysis_lib.Analysis]:
  """Leaves out the comparisons that have fewer than `FEWEST_SEEDS` seeds."""
  return {
    name: analysis
    for name, analysis in analyses.items()
    if len(analysis.facts['seeds']) >= FEWEST_SEEDS
  }


def compare(
  analyses: Sequence[analysis_lib.Analysis], column: str
) -> dict[str, Difference]:
  """Tests the methods that all comparisons rank in a measure.

  Args:
    analyses: Of different data, with the same baseline.
    column: A measure with a better direction; for the CF coefficient the ranks
      are those of differences on Fisher's z scale.

  Returns:
    Method -> its differences, for those whose kind the measure tells the merit
    of.
  """
  direction = measures.MEASURES[column].direction
  raw, p_values = {}, {}
  for method in _ranked_by_all(analyses, column):
    raw[method] = [a.differences[method, column].values for a in analyses]
    p_values[method] = statistics.signed_rank_p_value(
      np.concatenate([a.leads(method, column) for a in analyses])
    )
  found = {}
  for method, p_value in statistics.holm(p_values).items():
    verdict = 0
    if p_value < analysis_lib.LEVEL:
      middle = np.nanmedian(np.concatenate(raw[method]))
      verdict = int(direction * np.sign(middle))
    medians = tuple(float(np.nanmedian(values)) for values in raw[method])
    found[method] = Difference(medians, p_value, verdict)
  return found


def _ranked_by_all(analyses, column) -> list[str]:
  """In the order of the first one."""
  first, *others = (
    [
      method
      for kind, methods in analysis.kinds.items()
      for method in methods
      if analysis_lib.is_merit(kind, column)
      and method in analysis.ranked
      and method != analysis.baseline
      and analysis.estimates[method, column].reached
    ]
    for analysis in analyses
  )
  return [m for m in first if all(m in methods for methods in others)]
