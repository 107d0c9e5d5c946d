import numpy as np
import pandas as pd

from tff_fair.launchers import write_docs
from tff_fair.launchers.results import again_table
from tff_fair.launchers.results import records

_PAGE = 'a\n<!-- trained again -->\nold\n<!-- end of trained again -->\nb\n'


def _numbers(*rows):
  columns = ['method', 'metric', 'recorded', 'again']
  return pd.DataFrame(rows, columns=columns).assign(
    table='cffl_table2', cell='mnist_p5', seed=0, recorded_by='x', again_by='y'
  )


def test_a_table_by_hand():
  rows = _numbers(
    ('fed_avg', 'client_accuracy_max', 90.0, 90.0),
    ('fed_avg', 'cf', np.nan, np.nan),
    # A thousandth, and a hundredth.
    ('cffl_u0.1', 'client_accuracy_max', 90.0, 90.09),
    ('cffl_u0.1', 'cf', 99.0, 98.01),
    ('cffl_u1', 'client_accuracy_max', 90.0, 80.0),
    ('cffl_u1', 'cf', np.nan, 50.0),
  )
  assert again_table.render(_PAGE, rows).splitlines() == [
    'a',
    '<!-- trained again -->',
    '| table: cell | method | seed | numbers | equal | most unlike |',
    '| --- | --- | --- | --- | --- | --- |',
    '| `cffl_table2`: `mnist_p5` | FedAvg | 0 | 2 | 2 | none |',
    '| `cffl_table2`: `mnist_p5` | CFFL, u .1 | 0 | 2 | 0 | CF coefficient'
    ' (per cent): 98.01 in place of 99 |',
    '| `cffl_table2`: `mnist_p5` | CFFL, u 1 | 0 | 2 | 0 | CF coefficient'
    ' (per cent): 50 in place of – |',
    '<!-- end of trained again -->',
    'b',
  ]
  assert again_table.render(_PAGE, None) == _PAGE


def test_the_committed_records_are_those_of_the_tables():
  results = write_docs.ROOT / 'results'
  rows = again_table.read(results / again_table.FILE).astype({'seed': str})
  there = records.read(results)
  merged = rows.merge(there, on=[*again_table.RUN, 'metric'])
  assert len(merged) == len(rows)
  assert (merged['recorded'] == merged['value']).all()
