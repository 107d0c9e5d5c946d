"""The client-data contract.

A client is either plain data, `D* = {<x=float32[?, ...], y=int32[?]>}*`, or

    OrderedDict(client_id=int32*, train=D*, holdout=D*)

where `client_id` is a sequence of one integer, 0..num_clients-1, the client's
row in the client table. For a method that weighs clients by groups of people,
`D*` has a third component, `group=int32[?]`, the group 0 or 1 of each example.
Any batching of `D*` is legal; local training first gathers the elements into
one tensor, so a single element with all of the client's data is the natural
form. Epochs, shuffling and batching belong to the client work, not to the data
set.
"""

import collections
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.runtime import element_dataset
from tff_fair.runtime.device import graph_import

_LARGEST_INT32 = np.iinfo(np.int32).max
# Larger than any client; `rebatch` allocates only what is needed.
_ALL = 2**40


def client_data_type(
  input_spec: tf.TensorSpec,
  num_clients: int | None = None,
  with_groups: bool = False,
) -> tff.Type:
  """The unplaced TFF type of one client's data.

  Args:
    input_spec: Spec of a batch of inputs, `float32[?, ...]`.
    num_clients: If given, the structure with a client id; else plain data.
    with_groups: Whether examples also have `group=int32[?]`.

  Returns:
    `<x=float32[?, ...], y=int32[?]>*`, or
    `<client_id=int32*, train=<x=...,y=...>*, holdout=<x=...,y=...>*>`.
  """
  components = collections.OrderedDict(
    x=tff.TensorType(np.float32, input_spec.shape),
    y=tff.TensorType(np.int32, [None]),
  )
  if with_groups:
    components['group'] = tff.TensorType(np.int32, [None])
  examples = tff.SequenceType(tff.types.to_type(components))
  if num_clients is None:
    return examples
  return tff.types.to_type(
    collections.OrderedDict(
      client_id=tff.SequenceType(np.int32),
      train=examples,
      holdout=examples,
    )
  )


def build_client_data(
  client_id: int,
  train: tuple[Any, ...],
  holdout: tuple[Any, ...],
  *,
  check_finite: bool = True,
) -> collections.OrderedDict:
  """Builds one client's data in the structured form.

  Args:
    client_id: The client's row in the client table, from 0.
    train: `(x, y)`, numbers [n, ...] and the classes, whole numbers [n]; they
      become float32 and int32; n may be 0. Or `(x, y, group)`, with the group
      of each example, 0 or 1, for methods that need it.
    holdout: Arrays as in `train`: the client's validation part.
    check_finite: Whether inputs must be finite as float32. Otherwise each round
      trains the client, drops its update, and counts it as rejected.

  Returns:
    `OrderedDict(client_id, train, holdout)` of `tf.data.Dataset`s of one
    element each.

  Raises:
    TypeError: If the id is not an integer, `x` is not numeric, or `y` does not
      hold integers.
    ValueError: If the id is negative, `x` and `y` differ in length, `y` is not
      a vector or has a label outside int32, an input is not finite, or groups
      are not 0 or 1, one for each label.
  """
  if isinstance(client_id, str):
    raise TypeError(
      f'client_id must be an integer, found {client_id!r}: client.from_arrays'
      ' and client.from_dataframe number clients by their names.'
    )
  client_id = checks.check_integer('client_id', client_id, 0, _LARGEST_INT32)
  return collections.OrderedDict(
    client_id=element_dataset.ElementDataset(np.int32(client_id)),
    train=_dataset(client_id, 'train', train, check_finite),
    holdout=_dataset(client_id, 'holdout', holdout, check_finite),
  )


def gather_examples(dataset: tf.data.Dataset) -> collections.OrderedDict:
  """Gathers a data set with any batching into one tensor per component.

  Args:
    dataset: Elements `OrderedDict(x=float32[?, ...], y=int32[?])`, perhaps with
      `group=int32[?]`.

  Returns:
    `OrderedDict(x=float32[n, ...], y=int32[n])`, and groups; n is 0 for an
    empty data set.
  """
  # A runtime that has the only element at hand finds these operations by it.
  with tf.name_scope(graph_import.WHOLE):
    empty = tf.nest.map_structure(
      lambda spec: tf.zeros([0, *spec.shape[1:]], spec.dtype),
      dataset.element_spec,
    )
    whole = dataset.rebatch(_ALL)  # No element if there are no examples.
    whole = whole.concatenate(tf.data.Dataset.from_tensors(empty))
    return whole.take(1).get_single_element()


def has_examples(examples: Any) -> tf.Tensor:
  """Returns whether a client has training data: bool scalar.

  Args:
    examples: The client's gathered examples, with a part `train`.
  """
  return tf.size(examples['train']['y']) > 0


def count_classes(labels: Any, num_classes: int) -> tf.Tensor:
  """The number of distinct labels, an int32 scalar.

  Args:
    labels: `int32[n]`, in 0..num_classes-1.
    num_classes: Number of classes.
  """
  counts = tf.math.bincount(labels, minlength=num_classes)
  return tf.math.count_nonzero(counts, dtype=tf.int32)


def build_gather_client(
  data_type: tff.Type, num_classes: int, num_clients: int | None
) -> tff.Computation:
  """The part of a client's round that reads the data set.

  `data_type -> <key=int32, train=<x,y>[, holdout=<x,y>]>`: `key` distinguishes
  clients in random draws, by the id or a checksum of plain data. A label, an id
  or a group out of range is an error at run time.
  """
  has_ids = num_clients is not None

  # In parts: a block that takes one sequence, and all of it, needs no data set
  # where the arrays are at hand.
  @tff.tensorflow.computation(data_type['train'] if has_ids else data_type)
  def gather(dataset):
    return gather_examples(dataset)

  if not has_ids:

    @tff.tensorflow.computation(gather.type_signature.result)
    @tf.function(autograph=False)
    def check_plain(train):
      _check_ranges((train['y'], num_classes, 'Labels'))
      return collections.OrderedDict(key=_checksum(train), train=train)

    @tff.federated_computation(data_type)
    def gather_plain(data):
      return check_plain(gather(data))

    return gather_plain

  @tff.tensorflow.computation(data_type['client_id'])
  def only_id(ids):
    return ids.get_single_element()

  @tff.tensorflow.computation(
    np.int32, gather.type_signature.result, gather.type_signature.result
  )
  @tf.function(autograph=False)
  def check(client_id, train, holdout):
    _check_ranges(
      (client_id, num_clients, 'The client id'),
      (train['y'], num_classes, 'Labels'),
      (holdout['y'], num_classes, 'Labels'),
      *(
        (part['group'], 2, 'Groups')
        for part in (train, holdout)
        if 'group' in part
      ),
    )
    return collections.OrderedDict(key=client_id, train=train, holdout=holdout)

  @tff.federated_computation(data_type)
  def gather_client(data):
    return check(
      only_id(data.client_id), gather(data.train), gather(data.holdout)
    )

  return gather_client


def check_labels(what: str, y: Any) -> np.ndarray:
  """Returns labels as `int32[n]` if they are classes."""
  y = np.asarray(y)
  if not y.size:
    return y.astype(np.int32)
  if y.dtype.kind in 'USO':
    raise TypeError(
      f'The labels of {what} must be integers, found {y.dtype} such as'
      f' {y.flat[0]!r}: client.from_arrays and client.from_dataframe number'
      ' classes by their names.'
    )
  # pandas makes floats of integers beside a missing value.
  odd = y[~np.equal(y, np.floor(y))] if y.dtype.kind == 'f' else y[:0]
  if y.dtype.kind not in 'biuf' or odd.size:
    found = odd if odd.size else y
    raise TypeError(
      f'The labels of {what} must be integers, the classes (only classification'
      f' is supported), found {y.dtype} such as {found.flat[0]!s}.'
    )
  if y.max() > _LARGEST_INT32 or y.min() < -_LARGEST_INT32:
    raise ValueError(
      f'The labels of {what} must be int32, found {y.min()} to {y.max()}.'
    )
  return y.astype(np.int32)


def _dataset(client_id, part, arrays, check_finite) -> tf.data.Dataset:
  x, y, *groups = map(np.asarray, arrays)
  what = f'The {part} part of client {client_id}'
  if x.dtype.kind not in 'biuf':
    raise TypeError(
      f'{what} must hold inputs that are numbers, found {x.dtype}.'
    )
  if y.ndim != 1 or x.shape[:1] != y.shape:
    one_hot = y.ndim == 2 and y.shape[1] > 1 and x.shape[:1] == y.shape[:1]
    remedy = ': y.argmax(axis=1) gives the classes of one-hot rows'
    raise ValueError(
      f'{what} must hold as many inputs as labels, found inputs of shape'
      f' {list(x.shape)} and labels of shape {list(y.shape)}'
      f'{remedy if one_hot else ""}.'
    )
  y = check_labels(f'client {client_id}', y)
  if check_finite:
    x = checks.check_inputs(
      what,
      x,
      ': client.from_dataframe treats missing values, and check_finite=False'
      ' leaves it to each round to drop the client',
    )
  else:
    with np.errstate(over='ignore'):
      x = np.asarray(x, np.float32)
  examples = collections.OrderedDict(x=x, y=y)
  for group in groups:
    if group.shape != y.shape or not np.isin(group, (0, 1)).all():
      raise ValueError(
        f'{what} must have the group 0 or 1 of each of its {len(y)} examples,'
        f' found {np.unique(group).tolist()[:5]} in shape {list(group.shape)}.'
      )
    examples['group'] = group.astype(np.int32)
  return element_dataset.ElementDataset(examples)


def _check_ranges(*checked) -> None:
  """Asserts `0 <= values < end` of each `(values, end, what)`.

  Call it within a `tf.function`, which runs asserts.
  """

  def check_one_by_one():
    for values, end, what in checked:
      in_range = tf.reduce_all((values >= 0) & (values < end))
      lowest, highest = tf.reduce_min(values), tf.reduce_max(values)
      sentence = f'{what} must lie in 0..{end - 1}, found lowest and highest'
      tf.debugging.Assert(in_range, [sentence, lowest, highest])
    return tf.no_op()

  # As unsigned numbers, negative ones are the largest: fewer operations.
  in_range = [
    tf.reduce_all(tf.bitcast(values, tf.uint32) < tf.constant(end, tf.uint32))
    for values, end, _ in checked
  ]
  tf.cond(tf.reduce_all(in_range), tf.no_op, check_one_by_one)


def _checksum(examples) -> tf.Tensor:
  """An int32 that differs between clients with different data."""
  first = tf.bitcast(examples['x'][:1], tf.int32)
  labels = examples['y'] * (1 + tf.range(tf.size(examples['y'])))
  return tf.reduce_sum(first) * 31 + tf.reduce_sum(labels)
