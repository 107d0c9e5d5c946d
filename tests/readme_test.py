"""The README does what it says."""

import pathlib
import re

from absl import flags
import pytest

from launchers import benchmark
from launchers import covariate_shift
from launchers import presets
from launchers import reproduce
from launchers import tables
from launchers import train_flags

_ROOT = pathlib.Path(__file__).parents[1]
_TEXT = (_ROOT / 'README.md').read_text()


def _blocks(language):
  return re.findall(rf'```{language}\n(.*?)```', _TEXT, re.DOTALL)


@pytest.mark.usefixtures('default_runtime')
def test_snippets_run_in_order(capsys):
  scope = {}
  for block in _blocks('python'):
    exec(block, scope)
  assert 'num_aggregated' in capsys.readouterr().out
  assert scope['state'].client_work['round'] == 2


def test_commands_name_flags_and_presets_that_exist():
  commands = ' '.join(_blocks('sh'))
  named = re.findall(r'--(\w+)=', commands)
  assert {'preset', 'algorithm', 'output_dir', 'compare_with'} <= set(named)
  defined = set(train_flags.FLAG_NAMES)
  for launcher in (benchmark, covariate_shift, reproduce):
    flag_values = flags.FlagValues()
    launcher.define_flags(flag_values)
    defined |= set(flag_values)
  assert set(named) <= defined
  for preset in re.findall(r'--preset=(\w+)', commands):
    assert preset in presets.PRESETS


def test_all_presets_and_tables_are_listed():
  listed = set(
    re.findall(r'`((?:fedaboost|cffl|corefed|fedquad|fedakd)_\w+)`', _TEXT)
  )
  assert listed == {*presets.PRESETS, *tables.TABLES}


def test_the_test_command_is_the_one_of_continuous_integration():
  assert 'pip install uv && uv run pytest\n' in _TEXT
  ci = (_ROOT / '.ci' / 'run').read_text()
  assert "'pip install uv && uv run pytest'" in ci


def test_linked_files_exist():
  links = re.findall(r'\]\(([^)#]+)\)', _TEXT)
  assert links
  for link in links:
    assert (_ROOT / link).exists(), link
