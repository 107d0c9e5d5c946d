"""Leaves out Grappler's lines about each graph that TFF's compiler optimises.

TensorFlow reads TF_CPP_MIN_LOG_LEVEL when it is imported, which most programs
do before they import this package, so to set the variable here is too late. JAX
sets it to 1, later still; 0 is the user's wish.
"""

from collections.abc import Iterator
import contextlib
import os
import re

from tff_fair.runtime import log_lines

_GRAPPLER = re.compile(rb'^\S+ \S+: \w tensorflow/core/grappler/')


@contextlib.contextmanager
def left_out() -> Iterator[None]:
  """A context in which Grappler's lines are left out.

  There is one for each start, and for each graph that it leaves as it is. With
  TF_CPP_MIN_LOG_LEVEL=0 nothing is left out.
  """
  if os.environ.get('TF_CPP_MIN_LOG_LEVEL') == '0':
    yield
    return
  with log_lines.left_out(_GRAPPLER):
    yield
