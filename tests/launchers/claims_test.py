"""The launcher that prints the verdicts."""

import shutil

from absl import flags
import pytest

from tff_fair.launchers import claims as launcher
from tff_fair.launchers.claiming import claims_page
from tff_fair.launchers.claiming import statements

_RESULTS = launcher.ROOT / 'results'


def _main(*arguments):
  flag_values = flags.FlagValues()
  launcher.define_flags(flag_values)
  arguments = [f'--results={_RESULTS}', *arguments]
  launcher.main(flag_values(['claims', *arguments]), flag_values)


def _names(text):
  """The claims in what was printed."""
  words = [line.split(' ')[0] for line in text.splitlines()]
  return [word for word in words if word in statements.CLAIMS]


def test_claims_are_printed_with_their_verdicts_and_counts(capsys):
  _main()
  lines = capsys.readouterr().out.splitlines()
  assert _names('\n'.join(lines)) == list(statements.CLAIMS)
  # Of the committed results: one of two comparisons of cffl-27 is against it.
  (line,) = (line for line in lines if line.startswith('cffl-27 '))
  assert line.split()[1:8] == ['holds', 'in', 'part', '1', '1', '0', '0']
  assert lines[-1].split()[0] == 'cffl' and len(lines[-1].split()) == 6


def test_filters(capsys):
  _main('--papers=cffl, fedquad')
  names = _names(capsys.readouterr().out)
  assert {statements.paper_of(name) for name in names} == {'cffl', 'fedquad'}
  found = []
  for verdict in ('holds', 'in_part', 'fails', 'undecided'):
    _main(f'--verdicts={verdict}', '--papers=cffl,fedquad')
    found += _names(capsys.readouterr().out)
  assert sorted(found) == sorted(names)


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (
      ['--papers=fedavg'],
      "Error: Each of --papers must be a known name, found 'fedavg'. Did you"
      ' mean fedakd?',
    ),
    (
      ['--verdicts=hold'],
      "Error: Each of --verdicts must be a known name, found 'hold'. Did you"
      ' mean holds?',
    ),
    (
      ['--results=nowhere'],
      'Error: --results must be a folder with recorded results, found no folder'
      " 'nowhere'.",
    ),
    (
      ['--write', '--papers=cffl'],
      'Error: --write must be given without --papers and --verdicts, which'
      ' leave claims out, found both.',
    ),
    (['x'], "Error: every argument must be a flag, found 'x'."),
  ],
)
def test_mistakes_are_one_sentence(arguments, message):
  with pytest.raises(SystemExit) as error:
    _main(*arguments)
  assert error.value.code == message


@pytest.fixture(name='clone')
def _clone(tmp_path, monkeypatch):
  """A clone with a recorded row, whose README has an empty block."""
  monkeypatch.setattr(launcher, 'ROOT', tmp_path)
  for folder in ('docs', 'results'):
    (tmp_path / folder).mkdir()
  block = 'a\n<!-- claims -->\n<!-- end of claims -->\nb\n'
  (tmp_path / 'README.md').write_text(block)
  shutil.copy(_RESULTS / 'fedquad_table5.csv', tmp_path / 'results')
  return tmp_path


def test_write(clone, capsys):
  _main(f'--results={clone / "results"}', '--write')
  assert _names(capsys.readouterr().out) == list(statements.CLAIMS)
  lines = (clone / 'results' / claims_page.FILE).read_text().splitlines()
  assert len(lines) == 1 + len(statements.CLAIMS)
  readme = (clone / 'README.md').read_text()
  assert readme.startswith('a\n<!-- claims -->\n| paper |')
  assert readme.endswith('|\n<!-- end of claims -->\nb\n')
  assert '# Claims' in (clone / 'docs' / 'claims.md').read_text()
  # What was written is not read as results.
  _main(f'--results={clone / "results"}')


def test_only_a_clone_has_pages_to_write(clone):
  (clone / 'docs').rmdir()
  results = clone / 'results'
  with pytest.raises(SystemExit, match='must be used in a clone, found no'):
    _main(f'--results={results}', '--write')
  assert not (results / claims_page.FILE).exists()
