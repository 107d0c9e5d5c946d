"""`~` in flags that are files or folders, which shells leave after `=`."""

from absl import flags
import pytest

from tff_fair.launchers import claims
from tff_fair.launchers import compare
from tff_fair.launchers import predict
from tff_fair.launchers import report
from tff_fair.launchers import reproduce
from tff_fair.launchers.options import settings
from tff_fair.launchers.options import train_flags


@pytest.mark.parametrize(
  ('launcher', 'names'),
  [
    (train_flags, ['output_dir', 'compare_with']),
    (compare, ['output_dir']),
    (reproduce, ['output_dir', 'record']),
    (report, ['output_file']),
    (predict, ['output_file']),
    (claims, ['results']),
  ],
)
def test_the_home_folder(launcher, names, monkeypatch):
  monkeypatch.setenv('HOME', '/home/me')
  for name in names:
    flag_values = flags.FlagValues()
    launcher.define_flags(flag_values)
    flag_values(['program', f'--{name}=~/runs/x'])
    found = flag_values[name].value
    assert found in ('/home/me/runs/x', ['/home/me/runs/x'])
    with pytest.raises(flags.Error, match="found '~nobody-there/x', of no us"):
      flag_values(['program', f'--{name}=~nobody-there/x'])


def test_a_run_knows_the_folder(monkeypatch):
  monkeypatch.setenv('HOME', '/home/me')
  arguments = ['--output_dir=~/x', '--compare_with=~/a', '--compare_with=~b/c']
  with pytest.raises(flags.Error, match='~b/c'):
    train_flags.parse(arguments)
  found = settings.resolve(
    train_flags.parse(arguments[:2]), train_flags.FLAG_NAMES
  )
  assert found['output_dir'] == '/home/me/x'
  assert found['compare_with'] == ['/home/me/a']
  text = settings.to_text(found, None)
  assert '--output_dir=/home/me/x\n' in text and '~' not in text
