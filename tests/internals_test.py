"""One test for each assumption about TensorFlow, TFF and Keras.

A failure after an upgrade means that the assumption in its message no longer
holds; `tff_fair.internals`, or the module that the test names, must change.
"""

import asyncio
import inspect

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import internals


def test_function_libraries_are_imported_under_names_of_their_own():
  graph = tf.Graph()
  with graph.as_default():
    tf.function(lambda x: 2 * x)(tf.constant(1.0))
  graph_def = graph.as_graph_def()
  (function,) = graph_def.library.function
  name = function.signature.name
  new_names = set()
  for _ in range(2):
    copy = tf.compat.v1.GraphDef.FromString(graph_def.SerializeToString())
    functions = internals.import_functions(copy)
    assert list(functions) == [name], (
      'load_function_def_library must return the functions by their old names'
    )
    (call,) = [node for node in copy.node if 'Call' in node.op]
    assert not copy.library.function and call.attr['f'].func.name != name, (
      'fix_node_def must make the nodes call the imported functions'
    )
    new_names.add(call.attr['f'].func.name)
  assert len(new_names) == 2, 'each import must have its own function names'


@pytest.mark.parametrize('dtype', [np.float32, np.int64, np.bool_])
def test_eager_tensors_have_the_buffer_protocol(dtype):
  tensor = tf.constant(np.arange(6).reshape(2, 3).astype(dtype))
  array = internals.read_only_array(tensor)
  np.testing.assert_array_equal(array, tensor.numpy())
  assert array.dtype == dtype
  assert np.shares_memory(array, np.asarray(memoryview(tensor))), (
    'a tensor on the CPU must be viewed, not copied'
  )
  with pytest.raises(ValueError, match='cannot set WRITEABLE flag'):
    array.flags.writeable = True


def test_iterators_are_restored_by_their_class(tmp_path):
  """`client.data_source` makes a class for each source."""

  class Iterator(tff.program.FederatedDataSourceIterator):
    federated_type = tff.FederatedType(np.int32, tff.CLIENTS)

    def __init__(self, source):
      self.source = source

    @classmethod
    def from_bytes(cls, buffer):
      return cls(f'restored from {buffer.decode()}')

    def to_bytes(self):
      return b'bytes'

    def select(self, k=None):
      return []

  async def save_and_load():
    manager = tff.program.FileProgramStateManager(tmp_path)
    await manager.save([Iterator('first')], 1)
    return await manager.load(1, [Iterator('second')])

  (found,) = asyncio.run(save_and_load())
  assert isinstance(found, Iterator) and found.source == 'restored from bytes'


_layers = tf.keras.layers


def test_keras_layers_hold_their_variables_as_attributes():
  for layer, shape in (
    (_layers.Dense(2), [3]),
    (_layers.Conv2D(2, 2), [4, 4, 1]),
    (_layers.BatchNormalization(), [3]),
    (_layers.GroupNormalization(1), [4, 4, 2]),
    (_layers.Embedding(4, 2), [3]),
    (_layers.RNN(_layers.GRUCell(2)), [3, 2]),
    (_layers.LSTM(2), [3, 2]),
  ):
    x = tf.ones([2, *shape])
    expected = layer(x)
    slots = internals.variable_slots(
      [layer, *layer.submodules], layer.variables
    )
    assert all(slots), f'{layer.name} must hold its variables in attributes'
    ones = [tf.ones_like(v) for v in layer.variables]
    with internals.replaced(slots, ones):
      changed = layer(x)
    assert np.any(np.abs(changed - expected) > 1e-6), (
      f'{layer.name} must read its variables through these attributes'
    )
    np.testing.assert_array_equal(layer(x), expected)


def test_recurrent_layers_with_dropout_can_be_searched():
  x = tf.keras.Input([3, 2])
  cell = _layers.LSTMCell(2, dropout=0.5, recurrent_dropout=0.5)
  model = tf.keras.Model(x, _layers.RNN([cell, _layers.GRUCell(2)])(x))
  with pytest.raises(ValueError, match='_dropout_mask_cache'):
    assert model.submodules
    pytest.fail('layers_of need not reset dropout masks any more')
  layers = internals.layers_of(model)
  assert cell in layers and layers[1:] == list(model.submodules)


def test_constants_of_layers_and_operations_are_found():
  """A graph in a graph cannot read eager tensors."""
  layer = _layers.Normalization(mean=[1.0, 2.0], variance=1.0)
  x = tf.keras.Input([2])
  model = tf.keras.Model(x, tf.abs(layer(x)) + 1.0)
  found = internals.constant_slots([model, *model.submodules])
  names = sorted(attribute for (_, attribute), _ in found)
  assert names == ['_flat_arguments', 'mean', 'variance'], (
    "Normalization's statistics and the 1 must be eager tensors in these places"
  )
  with tf.Graph().as_default():
    slots = [[slot] for slot, _ in found]
    constants = [internals.in_this_graph(held) for _, held in found]
    with internals.replaced(slots, constants):
      assert model(tf.ones([1, 2])).shape == (1, 2)


def test_graphs_tell_what_they_read_and_draw():
  outside, own = tf.constant([1.0]), tf.constant([2.0])

  @tf.function(autograph=False)
  def work(x):
    graph = tf.compat.v1.get_default_graph()
    assert not internals.eager_reads(graph, 0)
    y = tf.math.multiply(x, outside, name='first')
    number = len(internals.captures(graph))
    y = tf.math.add(y, own, name='second')
    assert internals.eager_reads(graph, 0) == ['first', 'second'], (
      'FuncGraph.captures must list eager tensors in order of their first use'
    )
    assert internals.eager_reads(graph, number) == ['second']
    tf.random.uniform([1]), tf.random.normal([1], seed=1)
    tf.random.stateless_uniform([1], [1, 2])
    drawn = [o.type for o in graph.get_operations() if internals.draws(o)]
    assert drawn == ['RandomUniform', 'RandomStandardNormal']
    return y

  work(tf.constant([1.0]))


def test_logits_before_an_activation():
  @tf.function(autograph=False)
  def work(x):
    kind, _, before = internals.made_by(tf.identity(tf.nn.softmax(x)))
    assert kind == 'Softmax' and before is x
    assert internals.made_by(tf.reshape(tf.sigmoid(x), [2])) == (
      'Sigmoid', 'Sigmoid', None
    )  # fmt: skip
    assert internals.made_by(x)[0] == 'Placeholder'
    return x

  x = tf.constant([[1.0, 2.0]])
  work(x)
  for name in ('softmax', 'sigmoid'):
    layer = _layers.Dense(2, activation=name, kernel_initializer='identity')
    np.testing.assert_array_equal(internals.noted_logits(layer(x)), x)
  assert internals.noted_logits(_layers.Dense(2)(x)) is None


def test_tensors_have_the_operators_that_layers_use():
  variable = internals.RecordedVariable([1.0, 2.0])
  found = [variable + 1, 1 - variable, variable * variable, variable[1]]
  assert [f.numpy().tolist() for f in found] == [[2, 3], [0, -1], [1, 4], 2], (
    'tf.Tensor.OVERLOADABLE_OPERATORS must list the operators of tensors'
  )
  variable.assign_add([1.0, 1.0])
  variable.assign_sub([0.0, 2.0])
  np.testing.assert_array_equal(tf.math.square(variable), [4, 1])


def test_keras_random_generators_have_the_methods_that_are_replaced():
  images = tf.random.stateless_uniform([20, 4, 4, 1], [1, 2])
  for layer in (
    _layers.Dropout(0.5), _layers.GaussianNoise(1.0), _layers.AlphaDropout(0.5),
    _layers.RandomFlip(), _layers.RandomContrast(0.5), _layers.RandomZoom(0.5),
  ):  # fmt: skip
    layer(images)  # Builds it.
    ((slot,),) = internals.random_slots([layer])
    generator = getattr(*slot)
    for name in (
      'dropout', 'random_normal', 'random_uniform', 'make_seed_for_stateless_op'
    ):  # fmt: skip
      ours = inspect.signature(getattr(internals.StatelessGenerator, name))
      theirs = inspect.signature(getattr(generator, name))
      known = [p for p in ours.parameters if p not in ('self', 'unused')]
      assert known == list(theirs.parameters)[: len(known)], (
        f"{name} of Keras's generator must have the parameters {known}"
      )
    calls = []
    for seed in ([1, 2], [1, 2], [1, 3]):
      stateless = internals.StatelessGenerator(seed, 0)
      with internals.replaced([[slot]], [stateless]):
        calls.append(layer(images, training=True))
    np.testing.assert_array_equal(calls[0], calls[1])
    assert np.any(calls[1] != calls[2]), (
      f'{layer.name} must draw from its _random_generator alone'
    )


def test_data_sets_that_are_made_when_they_are_used():
  class Lazy(internals.LazyDataset):
    element_spec = tf.TensorSpec([], tf.int32)
    num_built = 0

    def _build(self):
      self.num_built += 1
      return tf.data.Dataset.from_tensors(7)

  lazy = Lazy()
  assert lazy.element_spec.dtype == tf.int32 and not vars(lazy)
  for part in internals.LazyDataset._PARTS:
    getattr(lazy, part)
  assert {'num_built', *internals.LazyDataset._PARTS} == set(vars(lazy)), (
    'the initializer of tf.data.Dataset must set these attributes'
  )
  assert lazy.get_single_element() == 7 and lazy.num_built == 1
  with pytest.raises(AttributeError, match='other'):
    _ = lazy.other


def test_the_line_of_an_error_that_says_why():
  for message, line in (
    (
      'assertion failed: [x]\n\t [[{{node a}}]]\n\t [[b]]',
      'assertion failed: [x]',
    ),
    (
      'ValueError: x\nTraceback:\n\nValueError: x\n\n\n\t [[c]]',
      'ValueError: x',
    ),
    ('\n\t [[c]]', 'InternalError'),
  ):
    error = tf.errors.InternalError(None, None, message)
    assert internals.error_line(error) == line


def test_the_error_of_a_python_function_ends_with_empty_lines():
  def fail(value):
    raise ValueError('too hot')

  @tf.function
  def run():
    return tf.py_function(fail, [1.0], tf.float32)

  with pytest.raises(tf.errors.OpError) as error:
    run()
  assert internals.error_line(error.value) == 'ValueError: too hot'
