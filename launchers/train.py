"""Trains one method on one task.

  python -m launchers.train --preset=fedaboost_digits

A preset fills all flags; flags given beside it override it. Run again with the
same flags, a run goes on after its last checkpoint and ends with the same
numbers as one that was never stopped. docs/experiments.md describes the files
it writes.
"""

import os
import pathlib
import signal
import sys

from absl import app
from absl import flags

from launchers.options import help_text
from launchers.options import settings as settings_lib
from launchers.options import train_flags


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Runs the training that the flags describe.

  Args:
    argv: What is left of the command line: the program's name.
    flag_values: The parsed flags of `train_flags.define_flags`.
  """
  if len(argv) > 1:
    sys.exit(f'Error: every argument must be a flag, found {argv[1]!r}.')
  preset = flag_values['preset'].value
  try:
    settings = settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)
    output_dir = _output_dir(settings, preset)
    text = settings_lib.to_text(settings, preset)
    settings_lib.check_same_run(output_dir, text)
    settings_lib.check_finished(settings['compare_with'])
    settings_lib.make_writable(output_dir)
    notes = settings_lib.preset_notes(flag_values, train_flags.FLAG_NAMES)
  except settings_lib.SettingsError as error:
    sys.exit(f'Error: {error}')
  for note in notes:
    print(note)
  # TensorFlow takes seconds to import: flags were checked before. Level 3
  # silences what it says of CUDA on machines without a GPU.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  from launchers.runs import training

  # To be told to end is the same as Ctrl-C.
  signal.signal(signal.SIGTERM, signal.default_int_handler)
  try:
    training.train(settings, output_dir, text)
  except training.MISTAKES as error:
    sys.exit(f'Error: {error}')
  except KeyboardInterrupt:
    sys.exit('Error: stopped at once; the same command goes on.')


def _output_dir(settings, preset) -> pathlib.Path:
  if settings['output_dir']:
    return pathlib.Path(settings['output_dir'])
  name = preset or settings['task']
  return pathlib.Path('runs') / name / settings['algorithm']


if __name__ == '__main__':
  # Not `app.run`: TensorFlow, if imported after that, asks for its devices in
  # the middle of the import, and Keras then takes symbolic tensors for eager.
  train_flags.define_flags(flags.FLAGS)
  help_text.define_help()
  main(app.parse_flags_with_usage(sys.argv))
