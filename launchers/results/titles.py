"""Names of methods and data in tables of results.

titles.csv has those of data and methods that are not an algorithm's followed by
words, and the words that are shown otherwise. A variant of a method that
computes as the public scripts of FedAKD's authors do is called FedAKD's.
"""

import pathlib

import pandas as pd

from tff_fair.launchers.options import methods as methods_lib

_TITLES = (
  pd.read_csv(pathlib.Path(__file__).with_suffix('.csv'), dtype=str)
  .set_index(['kind', 'name'])['title']
  .to_dict()
)


def data(name: str) -> str:
  """Returns the name of a data set in papers, given its task's."""
  return _TITLES.get(('data', name), name)


def method(name: str) -> str:
  """Returns the title of a method of a table.

  It is the algorithm's name in papers, and the other words: `fed_avg_uniform`
  is FedAvg, uniform.
  """
  if ('method', name) in _TITLES:
    return _TITLES['method', name]
  known = [m for m in methods_lib.METHODS if f'{name}_'.startswith(f'{m}_')]
  algorithm = max(known, key=len)
  rest = name.removeprefix(algorithm).split('_')[1:]
  words = ' '.join(_TITLES.get(('word', word), word) for word in rest)
  return ', '.join(filter(None, [methods_lib.title(algorithm), words]))
