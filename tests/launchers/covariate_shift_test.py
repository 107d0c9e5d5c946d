"""The launcher of the report on covariate shift, on the embedded digits."""

import math
import subprocess
import sys

from absl import flags
import numpy as np
import pandas as pd
import pytest

from launchers import covariate_shift as launcher
import tasks
from tasks import covariate_shift


def _main(*arguments):
  flag_values = flags.FlagValues()
  launcher.define_flags(flag_values)
  launcher.main(flag_values(['covariate_shift', *arguments]), flag_values)


def _report(output_dir, *arguments):
  """The rows of clients.csv."""
  _main(f'--output_dir={output_dir}', '--num_clients=3', *arguments)
  return pd.read_csv(output_dir / 'clients.csv')


def _gaussian(y, weights=None):
  """Mean and covariance, as NumPy has them."""
  return np.average(y, axis=0, weights=weights), np.cov(y.T, aweights=weights)


def _divergence(one, base):
  """The sum over the axes in which both covariances are diagonal."""
  root = np.linalg.inv(np.linalg.cholesky(base[1]))
  values, axes = np.linalg.eigh(root @ one[1] @ root.T)
  away = axes.T @ root @ (one[0] - base[0])
  return 0.5 * np.sum(values - 1 + away**2 - np.log(values))


def test_import_leaves_tensorflow_alone():
  module = 'launchers.covariate_shift'
  code = f'import sys, {module}; sys.exit("tensorflow" in sys.modules)'
  subprocess.run([sys.executable, '-c', code], check=True)


class TestReportOnTheShift:
  @pytest.fixture(scope='class', name='written')
  def _written(self, tmp_path_factory):
    path = tmp_path_factory.mktemp('shift')
    return path, _report(path, '--shift_sizes=zipf', '--shift=3', '--pca_dim=4')

  @pytest.fixture(scope='class', name='task')
  def _task(self):
    return tasks.build_task(
      'digits',
      num_clients=3,
      partition='covariate_shift',
      shift_sizes='zipf',
      shift=3.0,
      pca_dim=4,
    )

  def test_files(self, written):
    path, _ = written
    names = ['clients.csv', 'kl.png', 'report.md']
    assert sorted(file.name for file in path.iterdir()) == names

  def test_sizes(self, written, task):
    _, frame = written
    assert frame['client_id'].tolist() == [0, 1, 2]
    # 898 / (k * 11 / 6) is 489.8, 244.9, 163.3.
    assert frame['num_examples'].tolist() == [490, 245, 163]
    distinct = [len(np.unique(np.concatenate(s))) for s in task.splits]
    assert frame['num_distinct'].tolist() == distinct

  def test_effective_sizes_are_those_of_the_weights(self, written, task):
    _, frame = written
    y = covariate_shift.principal_components(task.data.x, 4)
    weights = covariate_shift.client_weights(y, 3, shift=3.0, seed=0)
    expected = 1 / (weights**2).sum(axis=1)
    np.testing.assert_allclose(frame['effective_sample_size'], expected)
    np.testing.assert_allclose(frame['effective_share'], expected / 1797)

  def test_divergences_are_those_of_the_clients_examples(self, written, task):
    _, frame = written
    y = covariate_shift.principal_components(task.data.x, 4)
    for kl, split in zip(frame['kl'], task.splits, strict=True):
      own = _gaussian(y[np.concatenate(split)])
      assert kl == pytest.approx(_divergence(own, _gaussian(y)), rel=1e-4)

  def test_approximations_are_those_of_what_clients_draw_from(
    self, written, task
  ):
    _, frame = written
    y = covariate_shift.principal_components(task.data.x, 4)
    weights = covariate_shift.client_weights(y, 3, shift=3.0, seed=0)
    mean, covariance = _gaussian(y)
    for row, p in zip(frame.itertuples(), weights, strict=True):
      moved, shrunk = _gaussian(y, p)
      # The weighted covariance of NumPy is unbiased for fewer examples.
      shrunk *= 1 - (p**2).sum()
      for form, found in [
        ('expansion', row.kl_expansion),
        ('paper', row.kl_paper),
      ]:
        expected = covariate_shift.approximate_kl(
          moved - mean, shrunk - covariance, covariance, row.num_examples,
          form=form,
        )  # fmt: skip
        assert found == pytest.approx(expected, rel=1e-3)

  def test_controls_are_small_and_as_large_as_their_sizes_say(self, written):
    _, frame = written
    expected = 4 * 7 / (4 * frame['num_examples'])
    np.testing.assert_allclose(frame['control_expansion'], expected)
    # Of 14 degrees of freedom: the mean of three deviates by a fifth.
    ratio = (frame['control_kl'] / expected).mean()
    assert 0.4 < ratio < 1.8
    assert (frame['control_kl'] < frame['kl'] / 10).all()

  def test_the_page_shows_the_table(self, written):
    path, frame = written
    lines = (path / 'report.md').read_text().splitlines()
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
    assert cells[4:6] == [
      f'{100 * first["effective_share"]:.3g}',
      f'{first["kl"]:.3g}',
    ]


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


@pytest.mark.parametrize(
  'arguments',
  [
    ('--partition=dirichlet', '--dirichlet_alpha=1'),
    ('--shift_method=pc1_sort',),
  ],
)
def test_without_weights_a_sample_is_as_effective_as_large(tmp_path, arguments):
  frame = _report(tmp_path, '--pca_dim=2', *arguments)
  np.testing.assert_array_equal(
    frame['effective_sample_size'], frame['num_examples']
  )
  np.testing.assert_array_equal(frame['num_distinct'], frame['num_examples'])
  assert 'first 2 principal' in (tmp_path / 'report.md').read_text()


def test_the_approximation_without_weights_is_of_the_fitted_gaussian():
  rng = np.random.default_rng(0)
  y = rng.standard_normal((600, 2))
  clients = [np.arange(300), np.flatnonzero(y[:, 0] > -0.5)]
  frame = launcher.measure(y, clients, None, seed=0)
  base = _gaussian(y)
  for row, own in zip(frame.itertuples(), clients, strict=True):
    mean, covariance = _gaussian(y[own])
    expected = covariate_shift.approximate_kl(
      mean - base[0], covariance - base[1], base[1], math.inf
    )
    assert row.kl_expansion == pytest.approx(expected, rel=1e-3)


def test_a_client_with_too_few_examples_has_no_divergence():
  y = np.random.default_rng(0).standard_normal((50, 3))
  clients = [np.array([4, 4, 4, 5, 6]), np.arange(4), np.array([], int)]
  frame = launcher.measure(y, clients, None, seed=0)
  assert frame['num_distinct'].tolist() == [3, 4, 0]
  assert frame['kl'].notna().tolist() == [False, True, False]
  assert frame['control_kl'].notna().tolist() == [False, True, False]


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (['x'], r"^Error: every argument must be a flag, found 'x'\.$"),
    (
      ['--task=ehr'],
      r'^Error: --task must have images or numbers as inputs, found ehr\.$',
    ),
    (
      ['--partition=equal', '--shift=2'],
      r'^Error: --shift must not be given with --partition=equal, which',
    ),
    (
      ['--dirichlet_remainder=drop'],
      r'^Error: --dirichlet_remainder must not be given with '
      r'--partition=covariate_shift, which leaves it without effect\.$',
    ),
    (
      ['--shift_method=pc1_sort', '--shift_weights=ratio'],
      r'^Error: --shift_weights must not be given with '
      r'--shift_method=pc1_sort, which leaves it without effect\.$',
    ),
    (
      ['--task=femnist', '--partition=writer', '--shift_sizes=zipf'],
      r'^Error: --shift_sizes must not be given with --task=femnist, which',
    ),
    (['--shift=nan'], r'^Error: --shift must be finite, found nan\.$'),
    (['--shift=0'], r'^Error: shift must be positive, found 0\.0\.$'),
    (['--pca_dim=65'], r'^Error: pca_dim must be in 1\.\.64, found 65\.$'),
    (
      ['--partition=equal', '--pca_dim=65'],
      r'^Error: pca_dim must be in 1\.\.64, found 65\.$',
    ),
    (
      ['--task=adult'],
      r"^Error: The partition of the task 'adult' must be one of 'dirichlet', ",
    ),
  ],
)
def test_a_mistake_is_one_sentence(tmp_path, arguments, message):
  with pytest.raises(SystemExit, match=message) as error:
    _main(f'--output_dir={tmp_path}', *arguments)
  assert '\n' not in str(error.value)
  assert not list(tmp_path.iterdir())


def test_the_command_fails_with_one_line(tmp_path):
  done = subprocess.run(
    [sys.executable, '-m', 'launchers.covariate_shift', '--shift=nan',
     f'--output_dir={tmp_path}'],
    capture_output=True, check=False, text=True,
  )  # fmt: skip
  assert done.returncode == 1
  assert done.stderr == 'Error: --shift must be finite, found nan.\n'
