"""Prints what our recorded results say of the five papers' claims.

  python -m launchers.claims

Each claim is decided by comparisons of the rows in `results/`, paired over
seeds: it holds, holds in part, does not hold, or is undecided at this scale.
With --write, in a clone, the same goes to results/claims.csv, docs/claims.md
and the README.
"""

import pathlib

from absl import flags

from tff_fair import checks
from tff_fair.launchers import cli
from tff_fair.launchers.claiming import claims_page
from tff_fair.launchers.claiming import statements
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.results import records
from tff_fair.launchers.runs import run_files

ROOT = pathlib.Path(__file__).resolve().parents[1]
"""The clone."""

# Word on the command line -> verdict.
_VERDICTS = dict(
  zip(
    ('holds', 'in_part', 'fails', 'undecided', 'uncounted'),
    verdicts.SYMBOLS,
    strict=True,
  )
)


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_string(
    'results',
    'results',
    'Folder with the recorded results, a csv file for each table.',
    flag_values=flag_values,
  )
  flags.DEFINE_list(
    'papers',
    [],
    f'Only the claims of these papers: {", ".join(statements.PAPERS)}.',
    flag_values=flag_values,
  )
  flags.DEFINE_list(
    'verdicts',
    [],
    f'Only the claims with these verdicts: {", ".join(_VERDICTS)}.',
    flag_values=flag_values,
  )
  flags.DEFINE_boolean(
    'write',
    False,
    f'Writes {claims_page.FILE} into the folder of the results, and'
    ' docs/claims.md and the block of the README in a clone.',
    flag_values=flag_values,
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Prints the verdicts.

  Args:
    argv: What is left of the command line: the program's name.
    flag_values: The parsed flags of `define_flags`.
  """
  cli.check_only_flags(argv)
  papers = _checked_names(flag_values, 'papers', statements.PAPERS)
  words = _checked_names(flag_values, 'verdicts', _VERDICTS)
  write = flag_values['write'].value
  if write and (papers or words):
    cli.fail(
      '--write must be given without --papers and --verdicts, which leave'
      ' claims out, found both.'
    )
  folder = pathlib.Path(flag_values['results'].value)
  if not folder.is_dir():
    cli.fail(
      '--results must be a folder with recorded results, found no folder'
      f' {str(folder)!r}.'
    )
  with cli.one_sentence_errors(
    records.RecordsError, interrupted='interrupted; nothing was written.'
  ):
    recorded = verdicts.group(records.read(folder))
    results = verdicts.judge(recorded)
    if write:
      _write(folder, results, recorded)
  wanted = {_VERDICTS[word] for word in words or _VERDICTS}
  shown = {
    name: result
    for name, result in results.items()
    if statements.paper_of(name) in (papers or statements.PAPERS)
    and result.ours.verdict in wanted
  }
  print(claims_page.to_text(shown) if shown else 'No claim has this verdict.')


def _write(folder, results, recorded) -> None:
  readme = ROOT / 'README.md'
  if not (ROOT / 'docs').is_dir():
    cli.fail(f'--write must be used in a clone, found no {ROOT / "docs"}.')
  texts = claims_page.to_files(ROOT, folder, results, recorded)
  texts[readme] = claims_page.render(readme.read_text(), results)
  for path, text in texts.items():
    run_files.write_atomically(path, text)


def _checked_names(flag_values, flag, known) -> list[str]:
  """The names of a flag; they must be known."""
  names = [name.strip() for name in flag_values[flag].value]
  for name in names:
    if name not in known:
      cli.fail(checks.unknown_name(f'Each of --{flag}', name, known))
  return names


if __name__ == '__main__':
  cli.run(main, define_flags)
