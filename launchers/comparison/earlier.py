"""What compare.csv has of a comparison whose runs are not there any more.

So methods can be added to a comparison after its runs were removed, or on
another machine, from compare.csv and compare.json alone.
"""

from collections.abc import Mapping, Sequence
import io
import json
import pathlib
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tff_fair.launchers.comparison import reading
from tff_fair.launchers.execution import pool as pool_lib

# Facts that may differ: they follow from the methods.
_OF_THE_METHODS = ('excluded', 'notes', 'not_started')


class Earlier(NamedTuple):
  """What is there of methods that need no training.

  Attributes:
    methods: These methods.
    excluded: Those of them that have no result, each with the reason.
    rows: Their rows of compare.csv, all of text.
    accuracies: Method and seed -> the accuracies of the clients.
  """

  methods: Sequence[str] = ()
  excluded: Mapping[str, str] = {}
  rows: pd.DataFrame | None = None
  accuracies: Mapping[tuple[str, int], np.ndarray] = {}

  def add_to(self, frame: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Puts the rows of all methods together, in the order of `methods`."""
    if not self.methods:
      return frame
    # First those with all columns: an older version wrote fewer.
    both = pd.concat([_as_text(frame.to_csv(index=False)), self.rows])
    order = both['method'].map(list(methods).index)
    return both.iloc[order.argsort(kind='stable')]


def find(
  output_dir: pathlib.Path, facts: Mapping[str, Any], methods: Sequence[str]
) -> Earlier:
  """Finds the methods whose runs are gone, and whose rows are all there.

  A damaged file is no comparison, which is said.

  Args:
    output_dir: The directory of the comparison.
    facts: Its facts, the content of compare.json; with others, what is there is
      of another comparison, and nothing of it is taken.
    methods: The methods of the comparison.
  """
  gone = [m for m in methods if not (output_dir / 'runs' / m).exists()]
  csv_path, json_path = output_dir / 'compare.csv', output_dir / 'compare.json'
  if not gone or not csv_path.exists() or not json_path.exists():
    return Earlier()
  try:
    frame, found = reading.read(csv_path, json_path)
  except reading.ComparisonError as error:
    pool_lib.say(str(error))
    return Earlier()
  if _comparable(found) != _comparable(facts):
    return Earlier()
  seeds = frame[frame['chosen']].groupby('method')['seed'].agg(set)
  whole = {method for method, s in seeds.items() if s == {*facts['seeds']}}
  taken = [m for m in gone if m in whole or m in found['excluded']]
  results = reading.results(frame[frame['method'].isin(taken)])
  rows = _as_text(csv_path.read_text(encoding='utf-8'))
  return Earlier(
    taken,
    {m: r for m, r in found['excluded'].items() if m in taken},
    rows[rows['method'].isin(taken)],
    results.set_index(['method', 'seed'])['client_accuracies'].to_dict(),
  )


def _comparable(facts) -> dict[str, Any]:
  found = {n: v for n, v in facts.items() if n not in _OF_THE_METHODS}
  return json.loads(json.dumps(found))


def _as_text(csv) -> pd.DataFrame:
  """The cells as they are written."""
  return pd.read_csv(io.StringIO(csv), dtype=str, keep_default_na=False)
