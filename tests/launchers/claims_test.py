"""The launcher that prints the verdicts."""

from absl import flags
import pytest

from tff_fair.launchers import claims as launcher
from tff_fair.launchers import write_docs
from tff_fair.launchers.claiming import statements


def _main(*arguments):
  flag_values = flags.FlagValues()
  launcher.define_flags(flag_values)
  launcher.main(flag_values(['claims', *arguments]), flag_values)


def test_claims_are_printed_with_their_verdicts_and_counts(capsys):
  _main(f'--results={write_docs.ROOT / "results"}')
  lines = capsys.readouterr().out.splitlines()
  rows = [line.split() for line in lines[1 : lines.index('')]]
  # A claim has a row for each size.
  assert [*dict.fromkeys(r[0] for r in rows)] == list(statements.CLAIMS)
  # Of the committed results: one of two comparisons of cffl-27 is against it,
  # in each seed one client of five.
  (row,) = (row for row in rows if row[0] == 'cffl-27')
  assert row[3] == '-20' and row[6:12] == ['3', 'holds', 'in', 'part', '1', '1']
  assert lines[-1].startswith('| all | 144 |')


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (
      ['--results=nowhere'],
      'Error: --results must be a folder with recorded results, found no folder'
      " 'nowhere'.",
    ),
    (['x'], "Error: every argument must be a flag, found 'x'."),
  ],
)
def test_mistakes_are_one_sentence(arguments, message):
  with pytest.raises(SystemExit) as error:
    _main(*arguments)
  assert error.value.code == message
