import numpy as np
import pandas as pd
import pytest

from tff_fair.launchers.runs import distances


class _Process:
  """What `tff_fair.algorithms` processes offer, as far as it is asked for."""

  def divergence(self, before, after, data):
    assert isinstance(data, list)
    return {'parameters_d_cosine': np.float64(after - before + len(data))}


def test_of_round_passes_the_round_on():
  found = distances.of_round(_Process(), 1, 4, ('a', 'b'))
  assert found == {'parameters_d_cosine': 5.0}
  assert isinstance(found['parameters_d_cosine'], float)


def test_of_accuracies_by_hand():
  found = distances.of_accuracies(
    np.array([0.6, 0.8, np.nan, 0.1]), has_data=[True, True, True, False]
  )
  # cos = (.6 + .8) / (1 * sqrt(2)), and |.6 - .7| + |.8 - .7|.
  assert found == {
    'accuracy_d_cosine': pytest.approx(np.arccos(1.4 / np.sqrt(2))),
    'accuracy_d_manhattan': pytest.approx(0.2),
  }
  assert set(found) < set(distances.COLUMNS)


def test_last_is_of_the_last_row_as_far_as_there_are_columns():
  rounds = pd.DataFrame({'round': [1, 2], 'embedding_d_cosine': [np.nan, 0.5]})
  assert distances.last(rounds) == {'embedding_d_cosine': 0.5}
  assert distances.last(rounds[['round']]) == {}
