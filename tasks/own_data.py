"""Builds tasks of the user's own data, once these are arrays with names."""

import dataclasses

import numpy as np

from tff_fair import checks
from tff_fair.own_data import encoded
from tff_fair.tasks import options as options_lib
from tff_fair.tasks import pooled
from tff_fair.tasks import rules
from tff_fair.tasks import task


def check(data: encoded.Encoded, options: options_lib.TaskOptions) -> None:
  """Checks that options fit the data.

  Args:
    data: The data.
    options: Options with the defaults filled in.

  Raises:
    ValueError: If the model does not fit the inputs, or there are not as many
      clients as the options say.
  """
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
  data_set: rules.DataSet,
  data: encoded.Encoded,
  options: options_lib.TaskOptions,
) -> task.Task:
  """Returns a task of the user's own data.

  Args:
    data_set: The facts about the task.
    data: The data.
    options: Options with the defaults filled in.

  Raises:
    ValueError: As `check`, or if the data cannot be divided as the options say.
  """
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
    data_set.name,
    data=task.Examples(x, data.y),
    num_classes=len(data.class_names),
    options=options,
    owners=data.owners,
  )
  if data.is_number is not None:
    training = built.training_positions()
    built = dataclasses.replace(
      built,
      data=task.Examples(data.to_inputs(training), data.y),
      features=data.features(training),
    )
  return dataclasses.replace(
    built,
    client_names=names,
    class_names=data.class_names,
    notes=data.notes,
  )
