"""Values next to the limits of a flag, or of the argument of its name."""

import math

from tff_fair.launchers.options import flag_types

_SMALLEST = 2.0**-126  # The smallest normal number of float32.


def outside(flag):
  """Values of the right type that a flag must refuse."""
  if isinstance(flag, flag_types.Choice):
    return ['none such', next(iter(flag.choices)).upper()]
  if isinstance(flag, flag_types.Integer):
    if flag.choices:
      return [min(flag.choices) - 1, max(flag.choices) + 1]
    step = (lambda value: value - 1), (lambda value: value + 1)
  elif isinstance(flag, flag_types.Real):
    step = (
      lambda value: math.nextafter(value, -math.inf),
      lambda value: math.nextafter(value, math.inf),
    )
  else:
    return []
  down, up = step
  found = [
    None if flag.minimum is None else down(flag.minimum),
    flag.above,
    None if flag.maximum is None else up(flag.maximum),
    flag.below,
  ]
  found = [value for value in found if value is not None]
  if type(flag) is flag_types.Real:
    found = [*map(float, found), math.nan, math.inf, -math.inf]
  return found


def inside(flag):
  """Values that a flag must take: all choices, and those at its limits."""
  if isinstance(flag, flag_types.Switch):
    return [False, True]
  choices = getattr(flag, 'choices', ())
  if choices or not isinstance(flag, flag_types.Real):
    return list(choices)
  found = [
    flag.minimum,
    None if flag.above is None else max(flag.above, _SMALLEST),
    flag.maximum,
    None if flag.below is None else math.nextafter(flag.below, -math.inf),
  ]
  return [value for value in found if value is not None]
