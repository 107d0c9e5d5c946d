import types

import numpy as np
import pandas as pd
import pytest

from tff_fair import metrics
from tff_fair.launchers.runs import callbacks
from tff_fair.launchers.runs import distances


def _divergence(before, after, data):
  """The states are numbers; the order of both matters."""
  assert isinstance(data, list)
  return {'parameters_d_cosine': np.float64(10 * after - before + len(data))}


def _measure(number, scored=True, only_last=False, wanted=True):
  """Returns what is added to the row of a round of three."""
  run = types.SimpleNamespace(
    process=types.SimpleNamespace(divergence=_divergence),
    settings={'rounds': 3, 'distances': wanted},
    is_scored=[True, True, True, False],
  )
  accuracy = np.array([0.6, 0.8, np.nan, 0.1])
  scores = metrics.ClientScores(None, accuracy, None, None, None, None, {})
  worse = scores._replace(accuracy=accuracy / 2)
  both = {'global': worse, 'personal': scores} if scored else None
  row = {}
  result = callbacks.RoundResult(number, row, None, both, 1, 4, ('a', 'b'), 0.0)
  distances.Distances(only_last=only_last).after_round(run, result)
  return row


def test_distances_by_hand():
  # Of the states before and after, and of the clients' own models;
  # cos = (.6 + .8) / (1 * sqrt(2)), and |.6 - .7| + |.8 - .7|.
  found = _measure(number=1)
  assert found == {
    'parameters_d_cosine': 41.0,
    'accuracy_d_cosine': pytest.approx(np.arccos(1.4 / np.sqrt(2))),
    'accuracy_d_manhattan': pytest.approx(0.2),
  }
  assert isinstance(found['parameters_d_cosine'], float)
  assert set(found) < set(distances.COLUMNS)


def test_which_rounds_are_measured():
  assert not _measure(number=1, wanted=False)
  assert not _measure(number=1, scored=False)
  found = [bool(_measure(number, only_last=True)) for number in (1, 2, 3)]
  assert found == [False, False, True]


def test_last_is_of_the_last_row_as_far_as_there_are_columns():
  rounds = pd.DataFrame({'round': [1, 2], 'embedding_d_cosine': [np.nan, 0.5]})
  assert distances.last(rounds) == {'embedding_d_cosine': 0.5}
  assert distances.last(rounds[['round']]) == {}
