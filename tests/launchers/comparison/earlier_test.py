"""What is taken from a compare.csv whose runs are not there any more."""

import numpy as np
import pandas as pd
import pytest

from tests.launchers.comparison import made_comparison
from tff_fair.launchers.comparison import earlier
from tff_fair.launchers.comparison import reading

_METHODS = ['fed_avg', 'standalone', 'ditto', 'fed_prox', 'fed_rdn']


@pytest.fixture(name='folder')
def _folder(tmp_path):
  """A comparison of five methods, one of them excluded, without its runs."""
  facts = made_comparison.facts(excluded={'fed_rdn': 'no images.'})
  _write(tmp_path, made_comparison.rows(), facts)
  return tmp_path


def _write(folder, rows, facts):
  frame = pd.DataFrame(rows).reindex(columns=list(reading.COLUMNS))
  reading.write(frame, facts, folder / 'compare.csv', folder / 'compare.json')


def test_all_whose_runs_are_gone(folder):
  facts = made_comparison.facts(notes=['other notes, as of other methods'])
  (folder / 'runs/ditto').mkdir(parents=True)
  found = earlier.find(folder, facts, _METHODS)
  assert found.methods == ['fed_avg', 'standalone', 'fed_prox', 'fed_rdn']
  assert found.excluded == {'fed_rdn': 'no images.'}
  assert set(found.rows['method']) == {'fed_avg', 'standalone', 'fed_prox'}
  assert len(found.accuracies) == 3 * 3
  np.testing.assert_array_equal(
    found.accuracies['fed_avg', 1], made_comparison.accuracies('fed_avg', 1)
  )


def test_rows_stay_as_they_were_written(folder):
  written = (folder / 'compare.csv').read_text()
  found = earlier.find(folder, made_comparison.facts(), _METHODS)
  order = ['fed_avg', 'ditto', 'q_fed_avg', 'standalone', 'fed_prox']
  rows = [r for r in made_comparison.rows() if r['method'] == 'q_fed_avg']
  new = pd.DataFrame(rows).reindex(columns=list(reading.COLUMNS))
  both = found.add_to(new, order).to_csv(index=False)
  assert sorted(both.splitlines()) == sorted(written.splitlines())
  assert list(dict.fromkeys(found.add_to(new, order)['method'])) == order


def test_rows_of_an_older_version_are_of_no_known_processor(folder):
  rows = made_comparison.rows()
  frame = pd.DataFrame(rows).reindex(columns=list(reading.COLUMNS))
  paths = folder / 'compare.csv', folder / 'compare.json'
  older = frame[frame['method'] != 'ditto'].drop(columns='processor')
  reading.write(older, made_comparison.facts(), *paths)
  (folder / 'runs/ditto').mkdir(parents=True)
  found = earlier.find(folder, made_comparison.facts(), _METHODS)
  new = frame[frame['method'] == 'ditto'].assign(processor='a processor')
  both = found.add_to(new, ['fed_avg', 'ditto', 'standalone', 'fed_prox'])
  assert list(both) == list(reading.COLUMNS)
  reading.write(both, made_comparison.facts(), *paths)
  read = reading.read(*paths)[0].groupby('method')['processor'].agg(set)
  assert read['ditto'] == {'a processor'}
  assert all(read[m] == {''} for m in read.index if m != 'ditto')


def test_nothing_of_another_comparison(folder):
  for facts in (
    made_comparison.facts(rounds=7),
    made_comparison.facts(seeds=(0, 1)),
    made_comparison.facts(options={}),
  ):
    assert earlier.find(folder, facts, _METHODS) == earlier.Earlier()


def test_nothing_of_a_method_with_a_seed_that_was_not_trained(folder):
  rows = made_comparison.rows()
  rows = [r for r in rows if (r['method'], r['seed']) != ('fed_prox', 2)]
  _write(folder, rows, made_comparison.facts())
  found = earlier.find(folder, made_comparison.facts(), _METHODS)
  assert found.methods == ['fed_avg', 'standalone', 'ditto']


def test_a_damaged_comparison_is_said(folder, capsys):
  path = folder / 'compare.csv'
  path.write_text(path.read_text()[:-9])
  found = earlier.find(folder, made_comparison.facts(), _METHODS)
  assert found == earlier.Earlier()
  assert 'that it was cut or changed' in capsys.readouterr().out
  path.unlink()
  found = earlier.find(folder, made_comparison.facts(), _METHODS)
  assert found == earlier.Earlier() and not capsys.readouterr().out
