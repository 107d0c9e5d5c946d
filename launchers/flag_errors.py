"""absl's errors about a command line, reworded."""

import re

from absl import flags

from tff_fair import checks

_SUGGESTIONS = re.compile(r'Did you mean: (.*) \?$')


def sentence(error: Exception, flag_values: flags.FlagValues) -> str:
  """Describes what parsing a command line raised, in one sentence."""
  if isinstance(error, flags.UnrecognizedFlagError):
    return _unknown(error)
  text = ' '.join(str(error).split())
  if isinstance(error, flags.CantOpenFlagFileError):
    reason = text.rpartition('] ')[2].partition(':')[0] or text
    path = str(error.__context__.filename)
    return f'--flagfile={path} must be a file of flags, found: {reason}.'
  if isinstance(error, UnicodeDecodeError):
    return '--flagfile must be a file of flags, found one that is not text.'
  found = re.match(r'flag --(\w+)=', str(error))
  if found and found[1] in flag_values:
    return _illegal(error, flag_values[found[1]], found[0])
  found = re.fullmatch(
    r'Missing value for flag -+(\S+)|-+(flagfile) with no argument', text
  )
  if found:
    return f'--{found[1] or found[2]} must have a value, found none.'
  found = re.fullmatch(r'(-+\w+)=(.*) does not take an argument', text)
  if found:
    return f'{found[1]} must be given without a value, found {found[2]!r}.'
  return text


def _unknown(error: flags.UnrecognizedFlagError) -> str:
  near = _SUGGESTIONS.search(str(error))
  names = [f'--{name}' for name in near[1].split(', ')] if near else []
  tip = f' Did you mean {" or ".join(names)}?' if names else ''
  return f'--{error.flagname} is not a flag of this program.{tip}'


def _illegal(error: Exception, flag: flags.Flag, start: str) -> str:
  """Describes an illegal value; absl's message begins with `start`."""
  reason = str(error.__context__ or '')
  value = str(error)[len(start) :].removesuffix(f': {reason}')
  choices = getattr(flag.parser, 'enum_values', None)
  if choices:
    return checks.unknown_name(f'--{flag.name}', value, choices)
  # Such as 'a positive integer'.
  kind = 'true or false' if flag.boolean else flag.parser.syntactic_help
  if kind:
    return f'--{flag.name} must be {kind}, found {value!r}.'
  return f'--{flag.name}: {" ".join(reason.split())}'
