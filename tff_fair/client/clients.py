"""Clients of the user's own data: tables, arrays, and TFF's `ClientData`."""

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
import os
import textwrap
from typing import TYPE_CHECKING, Any
import warnings

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import splits
from tff_fair import summary
from tff_fair.client import client_data as client_data_lib
from tff_fair.client import data_source
from tff_fair.own_data import encoded as encoded_lib

if TYPE_CHECKING:
  import pandas as pd

# What TFF's own data sets call the parts of an example.
_INPUT_NAMES = ('x', 'pixels', 'image', 'images', 'features', 'inputs')
_LABEL_NAMES = ('y', 'label', 'labels', 'target', 'targets')
_BATCH = 1024

_Examples = tuple[np.ndarray, np.ndarray]


class Clients(summary.Summarized):
  """Clients with names, each with a training, a holdout and a test part.

  A client is meant by its id, an integer 0..num_clients-1, or by its name, a
  string. Parts are those of `tff_fair.splits.split_client`, the same
  for the same seed.

  Attributes:
    client_names: The name of each client, in the order of ids.
    class_names: The name of each class, in the order of labels.
    features: How each column of a table became an input; else empty.
    input_shape: Shape of the inputs of one example.
    notes: Sentences about the data that the user should read.
    num_examples: The number of examples of each client, in the order of ids;
      empty if the clients are read only when they are needed.
  """

  def __init__(
    self,
    examples_fn: Callable[[int], _Examples],
    *,
    client_names: Sequence[str],
    class_names: Sequence[str],
    input_shape: Sequence[int],
    features: Sequence[encoded_lib.Feature] = (),
    notes: Sequence[str] = (),
    num_examples: Sequence[int] = (),
    holdout_fraction: float = 0.1,
    test_fraction: float = 0.2,
    seed: int = 0,
  ) -> None:
    """Initializes the clients; see `from_dataframe` and its kin.

    Args:
      examples_fn: From a client's id to all of its examples `(x, y)`. Called
        each time a part of them is needed.
      client_names: The name of each client, all different.
      class_names: The name of each class.
      input_shape: Shape of the inputs of one example.
      features: How each feature of a table became an input.
      notes: Sentences about the data.
      num_examples: The number of examples of each client, if it is known.
      holdout_fraction: Share of the examples outside the test part.
      test_fraction: Share of all examples.
      seed: Seed of the splits.

    Raises:
      TypeError: If an argument is not of its kind.
      ValueError: If an argument is outside its range.
    """
    self._examples_fn = examples_fn
    self.client_names = tuple(client_names)
    self.class_names = tuple(class_names)
    self.features = tuple(features)
    self.input_shape = tuple(input_shape)
    self.notes = tuple(notes)
    self.num_examples = tuple(map(int, num_examples))
    self._ids = {name: i for i, name in enumerate(self.client_names)}
    self._split_options: dict[str, Any] = {
      'holdout_fraction': checks.check_fraction(
        'holdout_fraction', holdout_fraction
      ),
      'test_fraction': checks.check_fraction('test_fraction', test_fraction),
      'seed': checks.check_integer('seed', seed, 0),
    }

  def _summary(self) -> summary.Summary:
    title = f'{self.num_clients} clients, {self.num_classes} classes'
    columns: dict[str, Sequence[Any]] = {'client': self.client_names}
    if self.num_examples:
      title += f', {sum(self.num_examples)} examples'
      columns['examples'] = self.num_examples
    facts = [
      ('classes', textwrap.shorten(', '.join(self.class_names), 100)),
      ('inputs', str(list(self.input_shape))),
    ]
    if self.features:
      names = ', '.join(self.feature_names)
      facts.append(('features', textwrap.shorten(names, 100)))
    return summary.Summary(title, facts, columns)

  @property
  def num_clients(self) -> int:
    """Number of clients."""
    return len(self.client_names)

  @property
  def num_classes(self) -> int:
    """Number of classes."""
    return len(self.class_names)

  @property
  def feature_names(self) -> tuple[str, ...]:
    """The name of each feature of a table; else empty."""
    return tuple(feature.name for feature in self.features)

  def client_id(self, client: int | str) -> int:
    """Returns the id of a client.

    Args:
      client: Its id or its name.

    Raises:
      TypeError: If it is neither a string nor an integer.
      ValueError: If there is no such client.
    """
    if not isinstance(client, str):
      return checks.check_integer('client', client, 0, self.num_clients - 1)
    if client not in self._ids:
      hint = checks.did_you_mean(client, self.client_names)
      raise ValueError(
        f'client must be the name of one of the {self.num_clients} clients,'
        f' found {client!r}.{hint}'
      )
    return self._ids[client]

  def data(self, client: int | str) -> collections.OrderedDict:
    """Returns what the processes of this library take as a client's data.

    Args:
      client: Its id or its name.

    Returns:
      `OrderedDict(client_id, train, holdout)`, as `build_client_data`.
    """
    client_id = self.client_id(client)
    parts = self._parts(client_id)
    return client_data_lib.build_client_data(client_id, *parts[:2])

  def all(self) -> list[collections.OrderedDict]:
    """Returns the data of all clients, an argument of `process.next`.

    They are built anew at each call: for many rounds, keep the list.
    """
    return [self.data(i) for i in range(self.num_clients)]

  def test(self, client: int | str) -> _Examples:
    """Returns a client's test examples, `float32[n, ...]` and `int32[n]`.

    Args:
      client: Its id or its name.

    Raises:
      ValueError: If there is no such client, or an input is not finite.
    """
    client_id = self.client_id(client)
    x, y = self._parts(client_id)[2]
    x = checks.check_inputs(f'The test part of client {client_id}', x)
    return x, np.asarray(y, np.int32)

  def tests(self) -> list[_Examples]:
    """Returns the test examples of all clients, for `metrics.Evaluator`."""
    return [self.test(i) for i in range(self.num_clients)]

  def source(self, *, seed: int = 0) -> data_source.ClientDataSource:
    """Returns the clients as a source that samples some for each round.

    Args:
      seed: Seed of the choice of clients.
    """
    return data_source.ClientDataSource(
      self.data, range(self.num_clients), seed=seed
    )

  def _parts(self, client_id) -> list[_Examples]:
    """The examples that train, those held out, and the tests."""
    x, y = self._examples_fn(client_id)
    found = splits.split_client(
      np.arange(len(y)), client_id=client_id, **self._split_options
    )
    return [(x[part], y[part]) for part in found]


def from_dataframe(
  table: 'pd.DataFrame',
  *,
  client: Any,
  label: Any,
  features: Sequence[Any] | None = None,
  drop: Sequence[Any] = (),
  missing_values: str = 'refuse',
  holdout_fraction: float = 0.1,
  test_fraction: float = 0.2,
  seed: int = 0,
) -> Clients:
  """Makes clients of a table with a row for each example.

      hospitals = client.from_dataframe(df, client='hospital', label='outcome')

  Clients and classes are numbered in the order of their names. Numbers are
  standardised with mean and deviation of all examples outside test parts;
  texts and categories become one feature of 0 and 1 for each value; booleans
  become 0 and 1, or are standardised where some are missing. What the user
  should know, such as a column that looks like ids, is a warning and in
  `notes`.

  Args:
    table: The table.
    client: The column of the clients.
    label: The column of the classes: names, or whole numbers.
    features: The columns of the features; None for all others.
    drop: Columns that are no features, such as ids; not with `features`.
    missing_values: 'refuse'; 'drop' to leave out rows that have some; 'fill'
      for a category of its own, or the mean and a feature of its own.
    holdout_fraction: Share of a client's examples outside its test part that it
      holds out for its own validation.
    test_fraction: Share of a client's examples that test it.
    seed: Seed of the splits.

  Returns:
    The clients.

  Raises:
    TypeError: If `table` is not a DataFrame.
    ValueError: If the table or the description of its columns is not fit for
      classification; the message is one sentence.
  """
  from tff_fair.own_data import table as table_lib  # Imports pandas.

  found = table_lib.encode(
    table,
    client=client,
    label=label,
    features=features,
    drop=drop,
    missing_values=missing_values,
  )
  return _of_arrays(
    found,
    holdout_fraction=holdout_fraction,
    test_fraction=test_fraction,
    seed=seed,
  )


def from_arrays(
  x: Any,
  y: Any,
  client: Any,
  *,
  holdout_fraction: float = 0.1,
  test_fraction: float = 0.2,
  seed: int = 0,
) -> Clients:
  """Makes clients of arrays with an entry for each example.

  Args:
    x: Inputs, numbers [n, ...], used as they are; bytes are pixels, which are
      divided by 255, and images of them [n, height, width] get an axis of one
      channel.
    y: The classes [n], names or whole numbers.
    client: The client of each example [n], names or whole numbers.
    holdout_fraction: See `from_dataframe`.
    test_fraction: See `from_dataframe`.
    seed: See `from_dataframe`.

  Returns:
    The clients, numbered in the order of their names, as are the classes.

  Raises:
    ValueError: If the arrays are not fit for classification; the message is one
      sentence.
  """
  from tff_fair.own_data import arrays  # Imports pandas.

  return _of_arrays(
    arrays.encode(x, y, client),
    holdout_fraction=holdout_fraction,
    test_fraction=test_fraction,
    seed=seed,
  )


def from_records(
  records: Any,
  *,
  client: Any,
  label: Any,
  x: Any = None,
  holdout_fraction: float = 0.1,
  test_fraction: float = 0.2,
  seed: int = 0,
  **options: Any,
) -> Clients:
  """Makes clients of records, such as a data set of Hugging Face.

      hospitals = client.from_records(
        datasets.load_dataset('csv', data_files='own.csv')['train'],
        client='hospital',
        label='outcome',
      )

  Without `x` the records are a table, as for `from_dataframe`; with it, one
  entry is an array or an image, as for `from_arrays`. Where the data set names
  the classes of a column, they are the names of clients and classes.

  Args:
    records: Mappings from column to value, or a data set with a method
      `to_pandas`; one part of a data set, such as 'train'.
    client: The column of the clients.
    label: The column of the classes.
    x: The column of inputs that are arrays or images, of one shape; None for a
      table.
    holdout_fraction: See `from_dataframe`.
    test_fraction: See `from_dataframe`.
    seed: See `from_dataframe`.
    **options: Without `x`, other arguments of `from_dataframe`.

  Returns:
    The clients.

  Raises:
    TypeError: If the records are of another kind.
    ValueError: If they are not fit for classification; the message is one
      sentence.
  """
  from tff_fair.own_data import arrays  # Imports pandas.
  from tff_fair.own_data import records as records_lib
  from tff_fair.own_data import table as table_lib

  named = [client, label]
  if x is None:
    table = records_lib.to_table(records, named)
    found = table_lib.encode(table, client=client, label=label, **options)
  else:
    if options:
      raise ValueError(
        f'{next(iter(options))} must be given for tables only, found it with'
        f' x={x!r}.'
      )
    inputs, table = records_lib.to_arrays(records, x=x, named=named)
    found = arrays.encode(
      inputs, table[label], table[client], client_name=str(client)
    )
  return _of_arrays(
    found,
    holdout_fraction=holdout_fraction,
    test_fraction=test_fraction,
    seed=seed,
  )


def from_image_folder(
  path: str | os.PathLike,
  *,
  size: int | tuple[int, int] | None = None,
  holdout_fraction: float = 0.1,
  test_fraction: float = 0.2,
  seed: int = 0,
) -> Clients:
  """Makes clients of a folder of images, `path/CLIENT/CLASS/FILE`.

      clinics = client.from_image_folder('images', size=28)

  Inputs are float32 of 0 to 1: [n, height, width, 1] if all images are grey,
  [n, height, width, 3] otherwise.

  Args:
    path: The folder.
    size: The height and width that images of other sizes are resized to, one
      number for both; None to refuse images of different sizes.
    holdout_fraction: See `from_dataframe`.
    test_fraction: See `from_dataframe`.
    seed: See `from_dataframe`.

  Returns:
    The clients, numbered in the order of their names, as are the classes.

  Raises:
    TypeError: If `size` is not of integers.
    ValueError: If a file is not where it should be or cannot be read, or sizes
      differ and no size is given; the message is one sentence.
  """
  from tff_fair.own_data import image_folder  # Imports pandas.

  return _of_arrays(
    image_folder.encode(path, size=image_folder.check_size('size', size)),
    holdout_fraction=holdout_fraction,
    test_fraction=test_fraction,
    seed=seed,
  )


def from_client_data(
  client_data: tff.simulation.datasets.ClientData,
  *,
  num_classes: int | None = None,
  client_ids: Sequence[str] | None = None,
  elements: tuple[str, str] | None = None,
  holdout_fraction: float = 0.1,
  test_fraction: float = 0.2,
  seed: int = 0,
) -> Clients:
  """Makes clients of a `ClientData` of TFF, each read when it is needed.

  Args:
    client_data: The clients. The elements of their data sets, batched or not,
      are pairs `(x, y)`, or have two names such as `x` and `y`, or `pixels` and
      `label`. Inputs that are bytes are as in `from_arrays`.
    num_classes: Number of classes, whose labels are 0..num_classes-1; None to
      read all clients once and count them.
    client_ids: TFF's ids, which are strings, of the clients to use; None for
      all. They are the clients' names here, in this order.
    elements: The names of the inputs and the labels, if they are other ones.
    holdout_fraction: See `from_dataframe`.
    test_fraction: See `from_dataframe`.
    seed: See `from_dataframe`.

  Returns:
    The clients.

  Raises:
    TypeError: If `client_data` is not a `ClientData`, or the labels are not
      whole numbers.
    ValueError: If there is no such client or element, or the inputs have no
      fixed shape.
  """
  if not isinstance(client_data, tff.simulation.datasets.ClientData):
    raise TypeError(
      'client_data must be a tff.simulation.datasets.ClientData, found'
      f' {type(client_data).__name__}.'
    )
  from tff_fair.own_data import names as names_lib  # Imports pandas.

  known = [str(name) for name in client_data.client_ids]
  names = known if client_ids is None else [str(name) for name in client_ids]
  for name in sorted({*names} - {*known}):
    raise ValueError(
      'client_ids must name clients of client_data, found'
      f' {name!r}.{checks.did_you_mean(name, known)}'
    )
  if not names:
    raise ValueError('client_data must have clients, found none.')
  names_lib.check_printable('client_data', names)
  spec = client_data.create_tf_dataset_for_client(names[0]).element_spec
  x_key, y_key = _element_keys(spec, elements)
  is_batched = _is_batched(spec[x_key], spec[y_key])
  shape = spec[x_key].shape[int(is_batched) :]
  if not shape.is_fully_defined():
    raise ValueError(
      f'The inputs of client_data must have a fixed shape, found {shape}.'
    )
  is_grey = spec[x_key].dtype == tf.uint8 and shape.rank == 2
  if is_grey:
    shape = shape.concatenate([1])

  def examples(client_id: int) -> _Examples:
    dataset = client_data.create_tf_dataset_for_client(names[client_id])
    if not is_batched:
      dataset = dataset.batch(_BATCH)
    batches = [(e[x_key], e[y_key]) for e in dataset.as_numpy_iterator()]
    if not batches:
      return np.zeros([0, *shape], np.float32), np.zeros([0], np.int32)
    x, y = map(np.concatenate, zip(*batches, strict=True))
    if x.dtype == np.uint8:
      x = x.astype(np.float32) / np.float32(255)
    if is_grey:
      x = x[..., np.newaxis]
    return x, client_data_lib.check_labels(f'client {names[client_id]!r}', y)

  if num_classes is None:
    labels = (examples(i)[1] for i in range(len(names)))
    num_classes = 1 + max(y.max(initial=0) for y in labels)
  checks.check_integer('num_classes', num_classes, 2)
  return Clients(
    examples,
    client_names=names,
    class_names=tuple(map(str, range(num_classes))),
    input_shape=shape.as_list(),
    holdout_fraction=holdout_fraction,
    test_fraction=test_fraction,
    seed=seed,
  )


def _of_arrays(found: encoded_lib.Encoded, **options: Any) -> Clients:
  if found.owners is None:
    raise ValueError(
      'The data must say which client an example belongs to, found None for'
      ' the clients.'
    )
  positions = encoded_lib.positions_by_owner(
    found.owners, len(found.client_names)
  )
  parts = splits.split_clients(positions, **options)
  training = np.concatenate([p for s in parts for p in (s.train, s.holdout)])
  x, features = found.to_inputs(training)
  for note in found.notes:
    warnings.warn(note, stacklevel=3)
  return Clients(
    lambda i: (x[positions[i]], found.y[positions[i]]),
    client_names=found.client_names,
    class_names=found.class_names,
    features=features,
    input_shape=x.shape[1:],
    notes=found.notes,
    num_examples=[len(p) for p in positions],
    **options,
  )


def _element_keys(spec: Any, elements: tuple[str, str] | None) -> tuple:
  """The keys of the inputs and the labels in an element."""
  if isinstance(spec, (tuple, list)) and len(spec) == 2 and elements is None:
    return 0, 1
  names = list(spec) if isinstance(spec, Mapping) else []
  if elements is not None:
    found = [name for name in elements if name in names]
  else:
    found = [
      _first(known, names, default=None)
      for known in (_INPUT_NAMES, _LABEL_NAMES)
    ]
  if len(found) != 2 or None in found:
    raise ValueError(
      'The elements of client_data must be pairs (x, y), or elements must name'
      f" the inputs and the labels, such as ('pixels', 'label'), found"
      f' {names or spec}.'
    )
  return tuple(found)


def _first(wanted: Iterable[str], names: Sequence[str], default: Any) -> Any:
  return next((name for name in wanted if name in names), default)


def _is_batched(x: tf.TensorSpec, y: tf.TensorSpec) -> bool:
  return y.shape.rank > 0 and x.shape.rank > 0 and x.shape[0] == y.shape[0]
