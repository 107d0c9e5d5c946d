"""Prints what recorded results say of the five papers' claims.

  python -m launchers.claims

Each claim is decided by comparisons of the rows in `results/`, paired over
seeds, at each size at which there are any: it holds, holds in part, does not
hold, there is no difference, or it is undecided. docs/claims.md has the rules.
`launchers.write_docs` writes the same to results/claims.csv, docs/claims.md and
the README.
"""

import pathlib

from absl import flags

from tff_fair.launchers import cli
from tff_fair.launchers.claiming import claims_page
from tff_fair.launchers.claiming import evidence
from tff_fair.launchers.claiming import outcomes
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.options import paths
from tff_fair.launchers.results import records

_COLUMNS = [
  'id',
  'size',
  'estimate',
  'low',
  'high',
  'seeds',
  'verdict',
  *outcomes.OUTCOMES,
  'script_verdict',
]


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Args:
    flag_values: Where to define them.
  """
  paths.define(
    'results',
    'results',
    'Folder with the recorded results, a csv file for each table.',
    flag_values=flag_values,
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Prints a line for each claim and size, and the numbers by verdict.

  Args:
    argv: What is left of the command line: the program's name.
    flag_values: The parsed flags of `define_flags`.
  """
  cli.check_only_flags(argv)
  folder = pathlib.Path(flag_values['results'].value)
  if not folder.is_dir():
    cli.fail(
      '--results must be a folder with recorded results, found no folder'
      f' {str(folder)!r}.'
    )
  with cli.one_sentence_errors(
    records.RecordsError, interrupted='interrupted; nothing was written.'
  ):
    results = verdicts.judge(evidence.group(records.read(folder)))
  frame = claims_page.to_frame(results)
  print(frame[[*_COLUMNS, 'claim']].to_string(index=False))
  print(f'\n{claims_page.to_block(results, "docs/claims.md")}')


if __name__ == '__main__':
  cli.run(main, define_flags)
