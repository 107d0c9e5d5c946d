"""The error of a computation that fails in TensorFlow."""

import tensorflow as tf

from tff_fair import internals


def one_line(error: tf.errors.OpError) -> RuntimeError:
  """The error that a runtime raises, whose message is one line."""
  return RuntimeError(f'A computation failed: {internals.error_line(error)}')
