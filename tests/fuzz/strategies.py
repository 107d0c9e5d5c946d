"""What the property tests draw, and the checks that they share."""

from collections.abc import Callable, Iterator
import contextlib
from typing import Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.extra import numpy as hypothesis_numpy
import numpy as np
import pytest

# Numbers on which two formulas agree in all but the last digits.
MODERATE = st.floats(-8, 8, width=32, allow_subnormal=False)
_SIZES = np.float32([0, 1e-30, -1e-30, 1e-12, 1e12, 1e30, -1e30, 3e38])
# Finite numbers of all sizes that a diverging client comes to.
EXTREME = st.one_of(MODERATE, st.sampled_from(_SIZES.tolist()))
NOT_FINITE = st.sampled_from([np.nan, np.inf, -np.inf])
ANYTHING = st.one_of(EXTREME, NOT_FINITE)
POSITIVE = st.floats(0.125, 8, width=32)

_REFUSAL = r'(?s)\b(must|requires?|need)\b.*\b[Ff]ound\b'


def arrays(
  shape: Any, elements: st.SearchStrategy = MODERATE, dtype: Any = np.float32
) -> st.SearchStrategy:
  """Arrays of a shape, with a good many equal entries."""
  return hypothesis_numpy.arrays(dtype, shape, elements=elements)


def labels(size: Any, num_classes: int) -> st.SearchStrategy:
  """`int32[size]` in 0..num_classes-1."""
  return arrays(size, st.integers(0, num_classes - 1), np.int32)


def costly(test: Callable[..., Any]) -> Callable[..., Any]:
  """A third of the profile's examples, for what takes long."""
  number = hypothesis.settings.default.max_examples // 3
  return hypothesis.settings(max_examples=number)(test)


@contextlib.contextmanager
def refused() -> Iterator[None]:
  """The body must raise one of our errors: our words, at a line of ours."""
  with pytest.raises((TypeError, ValueError), match=_REFUSAL) as caught:
    yield
  assert {'tff_fair', 'tasks'} & set(caught.traceback[-1].path.parts)
