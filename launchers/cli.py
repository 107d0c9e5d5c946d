"""Code shared by all launchers: flags, signals, errors in one sentence.

A launcher defines `define_flags` and `main`, and ends with

  if __name__ == '__main__':
    cli.run(main, define_flags)
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import os
import re
import signal
import sys
from typing import NoReturn

from absl import flags

from tff_fair import checks
from tff_fair import plugins
from tff_fair.launchers import command_names
from tff_fair.launchers import interrupts
from tff_fair.launchers.options import help_screen

RESUMABLE = 'interrupted; run the same command again to resume.'


def run(
  main: Callable[[list[str]], None],
  define_flags: Callable[[flags.FlagValues], None],
  describe_help: Callable[[], help_screen.Help] | None = None,
  *,
  with_plugins: bool = False,
) -> None:
  """Defines and parses the flags, and calls `main` with the arguments left.

  Args:
    main: The program.
    define_flags: Defines its flags.
    describe_help: What `--help` shows; by default all its flags.
    with_plugins: Whether plug-ins are loaded first.
  """
  program = sys.modules['__main__']
  program.__doc__ = command_names.in_text(program.__doc__ or '')
  if with_plugins:
    load_plugins(sys.argv)
  # Not `app.run`: TensorFlow, if imported after that, asks for its devices in
  # the middle of the import, and Keras then takes symbolic tensors for eager.
  try:
    define_flags(flags.FLAGS)
  except flags.DuplicateFlagError as error:
    text = ' '.join(str(error).split())
    fail(f'a plug-in must not define a flag that this program has: {text}')
  help_screen.define(
    describe_help() if describe_help else help_screen.of_all(define_flags)
  )
  arguments = ['--help' if a == '-h' else a for a in sys.argv]
  argv = parse_flags(arguments, flags.FLAGS)
  interrupts.raise_again()
  interrupts.end_in_any_case()
  try:
    main(argv)
  except KeyboardInterrupt:
    fail('interrupted.')
  finally:
    interrupts.ignore()


def load_plugins(argv: Sequence[str]) -> None:
  """Loads the plug-ins of a command, which define flags.

  One that is installed, and fails, costs a line; one that the command names
  ends the program.
  """
  # A plug-in may import TensorFlow.
  _set_up_tensorflow()
  command = flags.FlagValues()
  flags.DEFINE_multi_string('plugins', [], '', flag_values=command)
  command.set_gnu_getopt(True)
  parse_flags(argv, command, known_only=True)
  for failure in plugins.load_installed():
    print(f'Warning: {failure}', file=sys.stderr)
  names = [n.strip() for t in command['plugins'].value for n in t.split(',')]
  try:
    plugins.load(filter(None, names))
  except plugins.PluginError as error:
    fail(error)


def parse_flags(
  argv: Sequence[str], flag_values: flags.FlagValues, **options: bool
) -> list[str]:
  """Parses a command line, and returns what is left of it.

  A mistake ends the program in one sentence.
  """
  try:
    return flag_values(argv, **options)
  except flags.UnrecognizedFlagError as error:
    near = checks.did_you_mean(error.flagname, flag_values)
    fail(f'--{error.flagname} is no flag of this program.{near}')
  except (flags.Error, ValueError) as error:
    text = ' '.join(str(error).split())
    choice = re.match(r'flag --(\w+)=(.*): value should be one of <', text)
    if choice:  # absl lists all names, and does not guess.
      names = flag_values[choice[1]].parser.enum_values
      text = checks.unknown_name(f'--{choice[1]}', choice[2], names)
    fail(text if text[-1] in '.?' else f'{text}.')


def check_only_flags(argv: Sequence[str]) -> None:
  """Ends the program if there are arguments after its name."""
  if len(argv) > 1:
    fail(f'every argument must be a flag, found {argv[1]!r}.')


def prepare_for_tensorflow() -> None:
  """Sets what TensorFlow reads, and makes SIGTERM the same as Ctrl-C.

  TensorFlow takes seconds to import, so launchers check their flags first, then
  call this, then import it. Until the next `one_sentence_errors`, either signal
  ends the program at once.
  """
  _set_up_tensorflow()
  interrupts.end_at_once(signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def one_sentence_errors(
  *errors: type[Exception], interrupted: str = RESUMABLE
) -> Iterator[None]:
  """A context in which errors, of one sentence, end the program with it.

  So does Ctrl-C, with the sentence `interrupted`.
  """
  interrupts.raise_again()
  try:
    yield
  except errors as error:
    fail(error)
  except OSError as error:
    where = f'{error.filename} ' if error.filename else 'A file '
    fail(
      f'{where}could not be read or written: {error.strerror or error}. When'
      ' that is mended, run the same command again to resume.'
    )
  except KeyboardInterrupt:
    fail(interrupted)


def _set_up_tensorflow() -> None:
  # Level 3 silences messages about CUDA on machines without a GPU.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  # Without instructions such as AVX512_VNNI, TensorFlow leaves oneDNN out, with
  # which convolutional networks take half the time there, too.
  os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')


def fail(message: object) -> NoReturn:
  """Ends the program with exit code 1 and `Error: message`, in one line."""
  sys.exit(f'Error: {" ".join(str(message).splitlines())}')
