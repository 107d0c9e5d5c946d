import numpy as np
import pandas as pd
import pytest

from tff_fair.launchers import write_docs
from tff_fair.launchers.results import attackers_table
from tff_fair.launchers.results import records

_PAGE = 'a\n<!-- attackers -->\nold\n<!-- end of attackers -->\nb\n'


def _runs(*rows):
  columns = ['method', 'attack', 'seed', 'mean', 'worst']
  return pd.DataFrame(rows, columns=columns).assign(command='x')


def test_a_table_by_hand():
  runs = _runs(
    ('FedAvg', 'none', 0, 0.8, 0.5),
    ('FedAvg', 'none', 1, 0.9, 0.7),
    ('FedAvg', 'sign_flip', 0, np.nan, np.nan),
    ('FedAvg', 'sign_flip', 1, np.nan, np.nan),
    ('AFL', 'none', 0, 0.25, 0.125),
    ('AFL', 'sign_flip', 0, 0.25, 0.5),
    ('AFL', 'sign_flip', 1, np.nan, np.nan),
  )
  assert attackers_table.render(_PAGE, runs).splitlines() == [
    'a',
    '<!-- attackers -->',
    '| method | `none` | `sign_flip` |',
    '| --- | ---: | ---: |',
    # Of two values the deviation is the difference by the root of 2.
    '| FedAvg | 0.85 ± 0.07, 0.60 ± 0.14 | diverged |',
    '| AFL | 0.25, 0.13 | 0.25, 0.50 (1 diverged) |',
    '<!-- end of attackers -->',
    'b',
  ]
  assert attackers_table.render(_PAGE, None) == _PAGE


def test_damaged_files(tmp_path):
  assert attackers_table.read(tmp_path) is None
  twice = _runs(*2 * [('FedAvg', 'none', 0, 0.8, 0.5)])
  for frame in (twice, twice[:1].drop(columns='worst')):
    frame.to_csv(tmp_path / attackers_table.FILE, index=False)
    with pytest.raises(records.RecordsError, match='must have one row for'):
      attackers_table.read(tmp_path)


def test_the_committed_file_is_whole():
  runs = attackers_table.read(write_docs.ROOT / 'results')
  sizes = runs.groupby(['method', 'attack'])['seed'].nunique()
  assert (sizes == 3).all() and runs['attack'].nunique() == 5
