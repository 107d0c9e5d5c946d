"""Distances and scores of models that diverge, against SciPy and NumPy."""

import math
import warnings

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy import special
from scipy import stats

from tests.fuzz import strategies
from tff_fair import fairness
from tff_fair import metrics

_C = 3


@given(
  strategies.arrays([3], strategies.EXTREME),
  strategies.arrays([3], strategies.EXTREME),
  strategies.POSITIVE,
)
def test_distances_of_models(u, v, factor):
  a, b = np.float64(u), np.float64(v)
  found = float(metrics.angle(u, v))
  assert 0 <= found <= math.pi
  lengths = np.linalg.norm(a) * np.linalg.norm(b)
  expected = np.clip(a @ b / lengths, -1, 1) if lengths else 0.0
  assert math.cos(found) == pytest.approx(expected, abs=1e-12)
  scaled = float(metrics.angle(a * factor, v))
  assert math.cos(scaled) == pytest.approx(math.cos(found), abs=1e-12)
  np.testing.assert_allclose(metrics.manhattan(u, v), np.abs(a - b).sum())
  assert metrics.manhattan(u, u) == 0


@given(strategies.arrays([3]), strategies.NOT_FINITE)
def test_a_model_that_is_not_finite_has_no_distance(u, bad):
  v = u.copy()
  v[1] = bad
  assert not np.isfinite(metrics.manhattan(u, v))
  assert np.isnan(metrics.angle(u, v))


_LOGITS = strategies.arrays(
  [4, _C], st.sampled_from([-2.0, 0.0, 1.0, 3.0, 1e30, -1e30]), np.float64
)


@given(_LOGITS, strategies.labels([4], _C), strategies.labels([4], 3))
def test_scores_of_logits(logits, labels, clients):
  found = metrics.score_predictions(logits, labels, clients, 3)
  log_p = special.log_softmax(np.float64(logits), axis=1)[range(4), labels]
  hits = logits.argmax(axis=1) == labels
  for client in range(3):
    own = clients == client
    assert found.num_examples[client] == own.sum()
    for name, each in (('accuracy', hits), ('loss', -log_p)):
      expected = each[own].mean() if own.any() else math.nan
      np.testing.assert_allclose(getattr(found, name)[client], expected)
  assert found.pooled['accuracy'] == pytest.approx(hits.mean())
  np.testing.assert_allclose(found.pooled['loss'], -log_p.mean())


@given(
  st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([math.nan, math.inf])),
    max_size=5,
  )
)
def test_measures_warn_of_nothing(scores):
  with warnings.catch_warnings():
    warnings.simplefilter('error')
    for measure in (
      fairness.variance,
      fairness.worst_mean,
      fairness.minimum,
      fairness.entropy,
      fairness.jain_index,
    ):
      found = measure(scores)
      assert math.isnan(found) or not np.isnan(scores).all()
    warnings.filterwarnings('ignore', 'invalid value', RuntimeWarning)
    _, *bounds = fairness.mean_with_interval(scores)
  known = fairness.defined('scores', scores)
  if len(known) < 2 or np.isinf(known).any():
    assert np.isnan(bounds).all()
  else:
    mean, half = known.mean(), 1.96 * stats.sem(known)
    np.testing.assert_allclose(bounds, [mean - half, mean + half])
