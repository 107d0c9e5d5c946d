"""The models by their names: functions of `tff_fair.models`, and plug-ins'."""

from collections.abc import Callable, Sequence
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
    return plugins.find_function(f'The model {name!r}', _REGISTERED[name])
  # Takes seconds to import.
  from tff_fair import models

  return getattr(models, name)
