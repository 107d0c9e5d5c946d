"""Sequences that are lists of tensors, and blocks that take them."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime.device import graph_function
from tff_fair.runtime.device import values

# Data sets sort names.
PAIR = tff.to_type(collections.OrderedDict(b=np.int32, a=np.float32))


@tff.tensorflow.computation(tff.SequenceType(PAIR))
def _only(pairs):
  pair = pairs.get_single_element()
  with tf.control_dependencies([pair['a']]):
    return -pair['a'], tf.identity(pair['b'])


@tff.tensorflow.computation(tff.SequenceType(PAIR))
def _only_a(pairs):
  return pairs.get_single_element()['a']


@tff.tensorflow.computation(tff.SequenceType(PAIR))
def _only_and_count(pairs):
  number = pairs.reduce(0, lambda total, _: total + 1)
  return pairs.get_single_element()['a'], number


def _slices(*pairs):
  return values.Slices(
    tuple((tf.constant(b), tf.constant(a)) for b, a in pairs), PAIR
  )


def _function(computation):
  return graph_function.GraphFunction(computation.to_building_block())


def _flatten(result):
  return [float(x) for x in values.flatten(result)]


@pytest.mark.parametrize(
  ('computation', 'expected', 'needs_data_set'),
  [
    (_only, [-1.5, 7], False),
    (_only_a, [1.5], False),
    (_only_and_count, [1.5, 1], True),
  ],
)
def test_only_what_a_data_set_is_needed_for(
  computation, expected, needs_data_set
):
  function = _function(computation)
  slices = _slices((7, 1.5))
  assert _flatten(function(slices)) == expected
  assert _flatten(function(slices.dataset())) == expected
  traced = tf.compat.v1.wrap_function(
    lambda b, a: values.flatten(function(values.Slices(((b, a),), PAIR))),
    [tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float32)],
  )
  assert _flatten(traced(tf.constant(7), tf.constant(1.5))) == expected
  graph_def = traced.graph.as_graph_def()
  nodes = [*graph_def.node]
  for library_function in graph_def.library.function:
    nodes.extend(library_function.node_def)
  assert any('Dataset' in node.op for node in nodes) == needs_data_set


def test_none_or_several_elements_are_not_a_single_one():
  function = _function(_only)
  for pairs in ([], [(1, 1.0), (2, 2.0)]):
    with pytest.raises(tf.errors.InvalidArgumentError, match='[Dd]ataset'):
      function(_slices(*pairs))


def test_as_a_data_set():
  elements = list(_slices((1, 2.0), (3, 4.0)).dataset().as_numpy_iterator())
  assert elements == [{'b': 1, 'a': 2.0}, {'b': 3, 'a': 4.0}]
  empty = _slices().dataset()
  assert not list(empty)
  assert list(empty.element_spec) == ['b', 'a']
