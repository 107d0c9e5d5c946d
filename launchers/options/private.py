"""Decides which runs can be private, and reads the flags of privacy.

A run is private if its clients send their update alone, and the server only
averages: then a private mean covers all that leaves a client for the training.
Nothing here imports TensorFlow.
"""

from collections.abc import Mapping
import math
from typing import Any

from tff_fair.launchers.options.methods import entry

ADAPTIVE = 'adaptive'
"""The value of `--dp_clip` for a norm that follows those of the clients."""

COLUMNS = ('epsilon', 'delta')
"""Those of a private run in metrics.csv, and in `final` of summary.json."""

_PLAIN_MEAN = 'tff.aggregators.MeanFactory'


def is_private(settings: Mapping[str, Any]) -> bool:
  """Returns whether a run adds noise."""
  return bool(settings['dp_noise_multiplier'])


def clip(settings: Mapping[str, Any]) -> float | None:
  """Returns the clipping norm of a private run; None if it is adaptive."""
  value = settings['dp_clip']
  return None if value == ADAPTIVE else float(value)


def sent_besides(method: entry.Method) -> str:
  """Returns why the updates of a method are not all that it needs, or ''.

  It goes on after 'found --algorithm=NAME'.
  """
  if method.rule != _PLAIN_MEAN:
    return f'whose rule is no plain mean of the updates: {method.rule}'
  if method.sends is None:
    return 'whose entry does not say what else its clients send'
  return f'whose clients also send {method.sends}' if method.sends else ''


def refusal(settings: Mapping[str, Any], method: entry.Method) -> str:
  """Returns why a run cannot be private as its flags ask for, or ''."""
  if not is_private(settings):
    return ''
  reason = sent_besides(method)
  if reason:
    return (
      '--dp_noise_multiplier must be given with a method whose clients send'
      f' nothing but their update, found --algorithm={method.name}, {reason}.'
    )
  value = settings['dp_clip']
  if value != ADAPTIVE and not _is_positive(value):
    return (
      f'--dp_clip must be a number above 0 or {ADAPTIVE!r}, found {value!r}.'
    )
  for name, forbidden, why in (
    ('robust', True, 'whose zeroing and clipping noise does not cover'),
    ('use_ce', False, "whose classifier is made of the clients' examples"),
    ('variant', 'correct_agg', 'which weights clients, as no private mean can'),
    # A norm that is no float would leave the model without an update.
    ('max_update_norm', 0, 'with which a norm may be infinite'),
  ):
    if name in settings and settings[name] == forbidden:
      shown = name if forbidden is True else f'{name}={forbidden}'
      shown = f'no{name}' if forbidden is False else shown
      return (
        f'--dp_noise_multiplier must be given without --{shown}, {why}, found'
        ' both.'
      )
  return ''


def _is_positive(text: str) -> bool:
  try:
    value = float(text)
  except ValueError:
    return False
  return 0 < value < math.inf
