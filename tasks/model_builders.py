"""The models by their names: functions of `tff_fair.models`, and plug-ins'."""

from collections.abc import Callable, Sequence
import functools
from typing import TYPE_CHECKING

from tff_fair import checks
from tff_fair import plugins
from tff_fair.tasks import rules

if TYPE_CHECKING:
  import tensorflow as tf

# Those of plug-ins.
_REGISTERED: dict[str, 'Callable[..., tf.keras.Model] | str'] = {}


def register(
  name: str,
  build: 'Callable[..., tf.keras.Model] | str',
  inputs: Sequence[str],
) -> None:
  """Adds a model from outside the package.

  Args:
    name: Its name.
    build: From the shape of an input and the number of classes to a Keras
      model; or where this function is, as 'module:name'.
    inputs: The kinds of inputs that it takes.

  Raises:
    TypeError: If `build` is not a function.
    ValueError: If there is a model of that name, or no such kind of inputs.
  """
  plugins.check_name('model', name)
  if name in rules.MODELS:
    raise ValueError(
      f'The name of a model must be new, found {name!r}, which exists.'
    )
  if not isinstance(build, str):
    checks.check_function('build', build, 'a shape and a number of classes')
  if isinstance(inputs, str) or not {*inputs} <= {*rules.INPUTS} or not inputs:
    raise ValueError(
      f'inputs of the model {name!r} must be some of'
      f' {", ".join(rules.INPUTS)}, found {inputs!r}.'
    )
  _REGISTERED[name] = build
  rules.MODELS[name] = tuple(inputs)


def get(name: str) -> 'Callable[..., tf.keras.Model]':
  """The function that builds a model.

  Returns:
    From the shape of an input and the number of classes to a Keras model.
  """
  if name in _REGISTERED:
    build = plugins.find_function(f'The model {name!r}', _REGISTERED[name])
    return functools.partial(_build, name, build)
  # Takes seconds to import.
  from tff_fair import models

  return getattr(models, name)


def _build(name, build, input_shape, num_classes) -> 'tf.keras.Model':
  """Builds the model of a plug-in; raises `PluginError` if it is of no use."""
  with plugins.named_errors(f'The model {name!r}', KeyboardInterrupt):
    model = build(input_shape, num_classes)
    outputs = getattr(model, 'output_shape', None)
  if isinstance(outputs, dict):
    outputs = outputs.get('logits', outputs)
  allowed = {num_classes, 1} if num_classes == 2 else {num_classes}
  if isinstance(outputs, tuple) and outputs[-1] not in allowed:
    raise plugins.PluginError(
      f'The model {name!r} must have {num_classes} outputs, one for each class,'
      f' found {outputs[-1]}.'
    )
  return model
