"""The launcher of the report on covariate shift, on the embedded digits."""

import dataclasses
import re

from absl import flags
import numpy as np
import pandas as pd
import pytest

from tff_fair import tasks
from tff_fair.launchers import covariate_shift as launcher
from tff_fair.launchers.runs import training

pytestmark = pytest.mark.usefixtures('runtime_as_before')


def _main(*arguments):
  flag_values = flags.FlagValues()
  launcher.define_flags(flag_values)
  launcher.main(flag_values(['covariate_shift', *arguments]), flag_values)


def _report(output_dir, *arguments):
  """The rows of clients.csv."""
  _main(f'--output_dir={output_dir}', '--num_clients=3', *arguments)
  return pd.read_csv(output_dir / 'clients.csv')


def test_report(tmp_path, capsys):
  frame = _report(tmp_path, '--shift_sizes=zipf', '--shift=3', '--pca_dim=4')
  names = ['clients.csv', 'kl.png', 'report.md']
  assert sorted(file.name for file in tmp_path.iterdir()) == names
  # 898 / (k * 11 / 6) is 489.8, 244.9, 163.3.
  assert frame['num_examples'].tolist() == [490, 245, 163]
  assert (frame['effective_sample_size'] < 1797).all()
  text = (tmp_path / 'report.md').read_text()
  assert capsys.readouterr().out == f'{text}\nresults: {tmp_path}\n'
  lines = text.splitlines()
  assert lines[0] == '# Covariate shift of the clients'
  assert lines[2] == (
    '`--task=digits --num_clients=3 --partition=covariate_shift'
    ' --shift_sizes=zipf --shift=3.0 --pca_dim=4`'
  )
  ratio = (frame['kl_paper'] / frame['kl']).median()
  assert f'as printed in the paper {ratio:.3g}' in lines[6]
  assert 'first 4 principal components' in lines[6]
  cells = [cell.strip() for cell in lines[-3].strip('|').split('|')]
  first = frame.iloc[0]
  assert cells[:3] == ['0', '490', str(int(first['num_distinct']))]
  share, kl = 100 * first['effective_share'], first['kl']
  assert cells[4:6] == [f'{share:.3g}', f'{kl:.3g}']


def test_the_picture_has_the_three_values_of_each_client(tmp_path):
  nan = np.nan
  columns = {
    'client_id': [0, 1, 2],
    'kl': [2.0, nan, 3.0],
    'kl_expansion': [-0.4, 0.9, 2.5],
    'control_kl': [0.01, 0.02, 0.03],
  }
  path = tmp_path / 'kl.png'
  (axes,) = launcher._draw(pd.DataFrame(columns), path).axes
  assert axes.get_yscale() == 'log' and path.exists()
  drawn = [line.get_ydata() for line in axes.lines]
  # What a logarithm cannot show is left out.
  expected = [[2.0, nan, 3.0], [nan, 0.9, 2.5], [0.01, 0.02, 0.03]]
  np.testing.assert_array_equal(drawn, expected)
  labels = [line.get_label().split()[0] for line in axes.lines]
  assert labels == ['exact', 'approximation', 'control:']


def test_named_clients(tmp_path, monkeypatch, capsys):
  build_task = training.build_task
  names = ('a|<b>', 'b', 'c\nd')
  monkeypatch.setattr(
    training,
    'build_task',
    lambda settings: dataclasses.replace(
      build_task(settings), client_names=names
    ),
  )
  frame = _report(tmp_path)
  assert frame['client'].tolist() == list(names)
  rows = capsys.readouterr().out.splitlines()
  assert [row for row in rows if row.startswith('| 0 a\\|&lt;b&gt; | ')]
  assert [row for row in rows if row.startswith('| 2 c d | ')]


def test_the_data_are_those_that_are_dealt(tmp_path):
  arguments = {'num_clients': 3, 'split': 'server', 'data_fraction': 0.5}
  frame = _report(
    tmp_path, '--split=server', '--data_fraction=0.5', '--data_seed=3'
  )
  # Half of the 1,294 that the server does not keep, and half of these.
  assert frame['num_examples'].sum() == 647 // 2
  task = tasks.build_task(
    'digits', partition='covariate_shift', seed=3, **arguments
  )
  distinct = [len(np.unique(np.concatenate(s))) for s in task.splits]
  assert frame['num_distinct'].tolist() == distinct
  share = frame['effective_sample_size'] / frame['effective_share']
  np.testing.assert_allclose(share, 647)


def test_without_weights_a_sample_is_as_effective_as_large(tmp_path):
  for arguments in (
    ('--partition=dirichlet', '--dirichlet_alpha=1'),
    ('--shift_method=pc1_sort',),
  ):
    frame = _report(tmp_path, '--pca_dim=2', *arguments)
    sizes = frame['num_examples'].tolist()
    assert frame['effective_sample_size'].tolist() == sizes
    assert frame['num_distinct'].tolist() == sizes
    assert 'first 2 principal' in (tmp_path / 'report.md').read_text()


# Flags | the beginning of the message.
_REFUSED = r"""
x | every argument must be a flag, found 'x'\.$
--task=ehr | --task must have images or numbers as inputs, found ehr
--partition=equal --shift=2 | --shift must not be given with --partition=equal, which
--task=femnist --partition=writer --shift_sizes=zipf | --shift_sizes must not be given with --task=femnist, which
--shift=nan | --shift must be finite, found nan\.$
--shift=0 | .*shift must be .*, found 0\.0\.$
--shift=1e300 | --shift must be above 0 and at most 1000000\.0, found 1e\+300\.$
--data_dir=/no/such | --data_dir=/no/such must be a folder that can be read, found: no such folder\.$
--pca_dim=65 | --pca_dim must be in 1\.\.64, found 65\.$
--plugins=a --plugins=b --partition=equal --pca_dim=65 | --pca_dim must be in 1\.\.64, found 65\.$
--task=adult | .*covariate_shift
"""  # noqa: E501


def test_a_mistake_is_one_sentence(tmp_path):
  for row in _REFUSED.strip().splitlines():
    line, message = row.split(' | ')
    with pytest.raises(SystemExit) as error:
      _main(f'--output_dir={tmp_path}', *line.split())
    found = str(error.value)
    assert re.match(f'Error: {message}', found), (line, found)
    assert '\n' not in found
    assert not list(tmp_path.iterdir()), line
