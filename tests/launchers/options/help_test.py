"""`--help` of the launchers: one screen that leads to every flag."""

import re

import pytest

from tff_fair.launchers import claims
from tff_fair.launchers import compare
from tff_fair.launchers import predict
from tff_fair.launchers import report
from tff_fair.launchers import reproduce
from tff_fair.launchers import train
from tff_fair.launchers.options import help_screen
from tff_fair.launchers.options import help_text
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import presets
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.tables import definitions

_LINES = 48  # Of a screen.
# Launcher -> what defines its flags, and its help.
_LAUNCHERS = {
  train: (train_flags.define_flags, help_text.describe_help),
  compare: (compare.define_flags, compare.describe_help),
  reproduce: (reproduce.define_flags, reproduce.describe_help),
  **{
    launcher: (
      launcher.define_flags,
      lambda launcher=launcher: help_screen.of_all(launcher.define_flags),
    )
    for launcher in (report, predict, claims)
  },
}


def _flags_in(text):
  return set(re.findall(r'^  --(?:\[no\])?(\w+)', text, re.MULTILINE))


@pytest.mark.parametrize(
  'launcher', _LAUNCHERS, ids=lambda module: module.__name__.split('.')[-1]
)
def test_the_first_screen_leads_to_all_flags(launcher):
  define_flags, describe_help = _LAUNCHERS[launcher]
  shown = describe_help()
  screen = f'{launcher.__doc__}\n{shown.first_screen()}'
  lines = screen.splitlines()
  assert len(lines) <= _LINES and max(map(len, lines)) <= 80
  found = _flags_in(screen) - {'help'}
  for name in shown.topics:
    assert any(line.startswith(f'  --help={name} ') for line in lines)
    page = shown.page(name)
    assert max(map(len, page.splitlines())) <= 80
    found |= _flags_in(page)
  assert found >= help_screen.own_flags(define_flags).keys()


def test_a_group_has_a_page_with_its_flags_alone():
  shown = help_text.describe_help()
  for title, group in train_flags.GROUPS.items():
    page = shown.page(title.lower())
    assert _flags_in(page) == {flag.name for flag in group}
  # Of training's flags, those that all methods share.
  assert _flags_in(compare.describe_help().page('data')) < _flags_in(
    shown.page('data')
  )


def test_presets_and_tables_stand_below_their_papers():
  for listed, names in (
    (help_text.describe_help().page('presets'), presets.PRESETS),
    (reproduce.describe_help().page('tables'), definitions.TABLES),
  ):
    papers = re.findall(r'^(\S+):$', listed, re.MULTILINE)
    assert sorted(papers) == sorted(m.title for m in methods.PAPERS.values())
    parts = listed.split('\n\n')
    for name in names:
      (part,) = [part for part in parts if f'\n  {name}: ' in part]
      assert part.startswith(f'{methods.title(name.partition("_")[0])}:')


def test_a_table_has_its_cells_and_methods():
  page = reproduce.describe_help().page('cffl_freerider')
  assert page.startswith('--table=cffl_freerider: CFFL, a free rider')
  assert 'mnist_p5 (cffl_freerider)' in page
  table = definitions.TABLES['cffl_freerider']
  assert all(f' {method}' in page for method in table.methods)


def test_help_has_every_flag_under_its_method():
  text = help_text.help_text()
  for group in train_flags.GROUPS:
    assert f'{group}:\n' in text
  parts = text.split('\n\n')
  for method in methods.METHODS.values():
    (part,) = [
      part for part in parts if part.startswith(f'--algorithm={method.name}:')
    ]
    for flag in method.flags:
      assert f'--{flag.name}' in part or f'--[no]{flag.name}' in part
    for name, value in method.defaults.items():
      assert f'--{name}' in part and f'default {value}]' in part
  assert max(map(len, text.splitlines())) <= 80
