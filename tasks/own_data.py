"""Tasks of the user's own data, which `--data_file` names."""

from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import Any

import numpy as np

from tff_fair import checks
from tff_fair.own_data import encoded
from tff_fair.tasks import options as options_lib
from tff_fair.tasks import pooled
from tff_fair.tasks import rules
from tff_fair.tasks import sources
from tff_fair.tasks import task


def data_set(
  name: str,
  encode: Callable[[options_lib.TaskOptions], encoded.Encoded],
  *,
  endings: Sequence[str],
  options: Sequence[str],
  **facts: Any,
) -> rules.DataSet:
  """Returns the facts about a task of the user's own data.

  Clients are in the order of their names; `num_clients` takes the first ones.

  Args:
    name: Name of the task.
    encode: From the options on which the examples depend, with the absolute
      path of the file, to the examples. Raises a ValueError if they are not fit
      for classification, a DataDamagedError if the file is none of its kind.
    endings: The legal ends of the file's name.
    options: Options that other data sets do not have, among them 'data_file'.
    **facts: Other attributes of the `DataSet`.
  """

  # A launcher checks the data before it imports TensorFlow, and then builds the
  # task of them.
  @functools.lru_cache(maxsize=1)
  def encode_once(relevant, version):
    del version  # Only for the cache.
    return encode(relevant)

  def read(chosen):
    path = sources.check_file(chosen.data_file, endings)
    values = {option: getattr(chosen, option) for option in options}
    relevant = options_lib.TaskOptions(
      **{**values, 'data_file': path, 'partition': chosen.partition}
    )
    return encode_once(relevant, sources.version(path))

  return rules.DataSet(
    name=name,
    build=lambda chosen: build(name, read(chosen), chosen),
    check_data=lambda chosen: check(read(chosen), chosen),
    partition=rules.OWN_PARTITION,
    dirichlet_alpha=0.5,
    model='mlp_fedaboost',
    options=tuple(options),
    **facts,
  )


def check(data: encoded.Encoded, options: options_lib.TaskOptions) -> None:
  """Checks that options fit the data."""
  shape = data.x.shape[1:]
  if 'numbers' not in rules.MODELS[options.model] and len(shape) not in (2, 3):
    raise ValueError(
      '--model must be one for numbers, such as mlp_fedaboost, for inputs of'
      f' the shape {list(shape)}, found {options.model}.'
    )
  if options.partition != rules.OWN_PARTITION:
    if options.num_clients is None:
      raise ValueError(
        '--num_clients must be given where examples are dealt to clients, as'
        f' with --partition={options.partition}, found none.'
      )
  elif options.num_clients is not None:
    checks.check_count(
      '--num_clients', options.num_clients, 1, len(data.client_names)
    )


def build(
  name: str,
  data: encoded.Encoded,
  options: options_lib.TaskOptions,
) -> task.Task:
  """Returns a task of the user's own data."""
  check(data, options)
  names = ()
  if options.partition == rules.OWN_PARTITION:
    data = data.of_first_clients(options.num_clients or len(data.client_names))
    names = data.client_names
    options = dataclasses.replace(options, num_clients=len(names))
  x = data.x.astype(np.float32)
  if x.ndim == 3:  # Images without a channel axis.
    x = x[..., np.newaxis]
  built = pooled.build(
    name,
    data=task.Examples(x, data.y),
    num_classes=len(data.class_names),
    options=options,
    owners=data.owners,
  )
  if data.is_number is not None:
    x, features = data.to_inputs(built.training_positions())
    built = dataclasses.replace(
      built, data=task.Examples(x, data.y), features=features
    )
  return dataclasses.replace(
    built,
    client_names=names,
    class_names=data.class_names,
    notes=data.notes,
    columns=data.columns,
    divided_by=data.divided_by,
    sensitive=data.sensitive,
    positive_class=data.positive_class,
  )
