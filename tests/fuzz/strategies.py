"""What the property tests draw, and the checks that they share."""

from collections.abc import Iterator
import contextlib
from typing import Any

from hypothesis import strategies as st
from hypothesis.extra import numpy as hypothesis_numpy
import numpy as np
import pytest

# Numbers on which two formulas agree in all but the last digits.
MODERATE = st.floats(-8, 8, width=32, allow_subnormal=False)
_REFUSAL = r'(?s)\b(must|requires?|need)\b.*\b[Ff]ound\b'


def arrays(
  shape: Any, elements: st.SearchStrategy = MODERATE, dtype: Any = np.float32
) -> st.SearchStrategy:
  """Arrays of a shape, with a good many equal entries."""
  return hypothesis_numpy.arrays(dtype, shape, elements=elements)


@contextlib.contextmanager
def refused() -> Iterator[None]:
  """The body must raise one of our errors: our words, at a line of ours."""
  with pytest.raises((TypeError, ValueError), match=_REFUSAL) as caught:
    yield
  assert {'tff_fair', 'tasks'} & set(caught.traceback[-1].path.parts)
