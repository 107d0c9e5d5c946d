"""Reports how far the inputs of a task's clients are from those of all.

  python -m launchers.covariate_shift --task=mnist --num_clients=10 --shift=5

Builds the partition that the same flags of `launchers.train` describe, fits a
Gaussian to each client's principal components, and puts its divergence from the
Gaussian of all examples beside what FedAKD's theorem 2.2 approximates it by.
Writes clients.csv (a row a client), report.md and kl.png.
"""

from collections.abc import Mapping, Sequence
import math
import os
import pathlib
import sys
from typing import Any

from absl import app
from absl import flags
import numpy as np
import pandas as pd

from launchers.options import settings as settings_lib
from launchers.options import train_flags
import tasks
from tasks import covariate_shift
from tasks import streams

_PCA_DIM = 10
# The records of the task 'ehr' have no principal components.
_DATA_FLAGS = tuple(
  name
  for name in train_flags.DATA_FLAG_NAMES
  if name not in ('ehr_scale', 'max_events')
)
_ALWAYS_SHOWN = ('task', 'partition')

_HEADINGS = {
  'client_id': 'client',
  'num_examples': 'examples',
  'num_distinct': 'distinct',
  'effective_sample_size': 'effective',
  'effective_share': 'share of all (%)',
  'kl': 'KL',
  'kl_expansion': 'approximation',
  'kl_paper': 'as printed',
  'control_kl': 'control KL',
  'control_expansion': 'its approximation',
}


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher: the data flags of `launchers.train`.

  Args:
    flag_values: Where to define them.
  """
  train_flags.define_flags(flag_values, _DATA_FLAGS)
  flag_values.set_default('partition', 'covariate_shift')
  flag_values['partition'].help = 'How examples are dealt to clients.'
  flag_values['pca_dim'].help = (
    'Principal components that are compared, and that the covariate-shift'
    f' partition shifts; the default is {_PCA_DIM}.'
  )
  flags.DEFINE_string(
    'output_dir',
    None,
    'Where the results go; the default is runs/covariate_shift/TASK.',
    flag_values=flag_values,
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Writes the report on the partition that the flags describe.

  Args:
    argv: What is left of the command line: the program's name.
    flag_values: The parsed flags of `define_flags`.
  """
  if len(argv) > 1:
    sys.exit(f'Error: every argument must be a flag, found {argv[1]!r}.')
  name = flag_values['task'].value
  if name == 'ehr':
    sys.exit('Error: --task must have images or numbers as inputs, found ehr.')
  output_dir = pathlib.Path(
    flag_values['output_dir'].value or f'runs/covariate_shift/{name}'
  )
  pca_dim = flag_values['pca_dim'].value or _PCA_DIM
  arguments = _arguments(flag_values)
  try:
    settings = settings_lib.resolve(
      train_flags.parse(arguments), train_flags.FLAG_NAMES
    )
    settings_lib.make_writable(output_dir)
  except settings_lib.SettingsError as error:
    sys.exit(f'Error: {error}')
  # TensorFlow takes seconds to import: flags were checked before.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  from launchers.runs import training

  try:
    # TFF's default context does not end well if nobody uses it.
    training.set_runtime(settings)
    task = training.build_task(settings)
    frame = _measure_task(task, settings, pca_dim)
  except training.MISTAKES as error:
    sys.exit(f'Error: {error}')
  text = _report(frame, arguments, pca_dim)
  _write(frame, text, output_dir)
  print(text)
  print(f'results: {output_dir}')


def measure(
  y: np.ndarray,
  clients: Sequence[np.ndarray],
  probabilities: np.ndarray | None,
  *,
  seed: int,
) -> pd.DataFrame:
  """Compares the Gaussian of each client with that of all examples.

  The approximations are, where the probabilities are known, those of the shift
  of the distribution that a client draws from, plus what the number of its
  examples adds; else those of the shift of its fitted Gaussian itself. The
  control of a client is as many examples drawn from all with replacement.

  Args:
    y: float64 [N, M], the principal components of all examples.
    clients: For each client its positions in `y`, as often as it has them.
    probabilities: float64 [K, N], by which clients draw with replacement; None
      if they do not: then the effective sample size is the number of examples.
    seed: Seed of the control, at least 0.

  Returns:
    A row a client: `client_id`, `num_examples`, `num_distinct`,
    `effective_sample_size` and its `effective_share` of N; the divergence `kl`
    in nats and its approximations `kl_expansion` and `kl_paper`; and of the
    control `control_kl` and `control_expansion`. The divergences of a client
    with at most M distinct examples, whose covariance is singular, are NaN.
  """
  base = covariate_shift.fit_gaussian(y)
  rows = []
  for k, own in enumerate(clients):
    p = None if probabilities is None else probabilities[k]
    distinct = len(np.unique(own))
    effective = float(len(own))
    if p is not None:
      effective = covariate_shift.effective_sample_size(p)
    row = {
      'client_id': k,
      'num_examples': len(own),
      'num_distinct': distinct,
      'effective_sample_size': effective,
      'effective_share': effective / len(y),
    }
    if distinct > y.shape[1]:
      rng = streams.generator(seed, streams.SHIFT_CONTROL, k)
      row |= _divergences(y, own, p, base, rng)
    rows.append(row)
  return pd.DataFrame(rows).reindex(columns=list(_HEADINGS))


def _divergences(y, own, p, base, rng) -> dict[str, float]:
  mean, covariance = base
  fitted = covariate_shift.fit_gaussian(y[own])
  shifted, num_samples = fitted, math.inf
  if p is not None:
    shifted, num_samples = covariate_shift.fit_gaussian(y, p), len(own)
  shift = (shifted[0] - mean, shifted[1] - covariance, covariance, num_samples)
  control = covariate_shift.fit_gaussian(y[rng.choice(len(y), len(own))])
  nothing = (np.zeros_like(mean), np.zeros_like(covariance), covariance)
  approximate = covariate_shift.approximate_kl
  return {
    'kl': covariate_shift.gaussian_kl(*fitted, *base),
    'kl_expansion': approximate(*shift),
    'kl_paper': approximate(*shift, form='paper'),
    'control_kl': covariate_shift.gaussian_kl(*control, *base),
    'control_expansion': approximate(*nothing, len(own)),
  }


def _arguments(flag_values: flags.FlagValues) -> list[str]:
  """The data flags, as they are given to `launchers.train`."""
  given = [
    name
    for name in _DATA_FLAGS
    if name in _ALWAYS_SHOWN or not flag_values[name].using_default_value
  ]
  if not _draws_by_weights(
    {n: flag_values[n].value for n in ('partition', 'shift_method')}
  ):
    given = [name for name in given if name != 'pca_dim']
  return [flag_values[name].serialize() for name in given]


def _draws_by_weights(settings: Mapping[str, Any]) -> bool:
  return (
    settings['partition'] == 'covariate_shift'
    and settings['shift_method'] != 'pc1_sort'
  )


def _measure_task(
  task: tasks.Task, settings: Mapping[str, Any], pca_dim: int
) -> pd.DataFrame:
  from launchers.runs import training
  from tasks import pooled

  pool = np.arange(len(task.data.y))
  if task.server is not None:
    pool = task.server.to_deal
  seed = settings['data_seed']
  pool = pooled.draw(pool, settings['data_fraction'], seed=seed)
  try:
    y = covariate_shift.principal_components(task.data.x[pool], pca_dim)
  except ValueError as error:
    raise training.RunError(str(error)) from error
  probabilities = None
  if _draws_by_weights(settings):
    chosen = {'shift': settings['shift'], 'weights': settings['shift_weights']}
    probabilities = covariate_shift.client_weights(
      y,
      task.num_clients,
      seed=seed,
      **{name: value for name, value in chosen.items() if value is not None},
    )
  clients = [
    np.searchsorted(pool, np.concatenate(split)) for split in task.splits
  ]
  return measure(y, clients, probabilities, seed=seed)


def _write(frame: pd.DataFrame, text: str, output_dir: pathlib.Path) -> None:
  from launchers.plots import shift_plots
  from launchers.runs import run_directory

  run_directory.write_atomically(
    output_dir / 'clients.csv', frame.to_csv(index=False)
  )
  run_directory.write_atomically(output_dir / 'report.md', text)
  shift_plots.divergences(output_dir / 'clients.csv', output_dir / 'kl.png')


def _report(frame: pd.DataFrame, arguments: list[str], pca_dim: int) -> str:
  shown = frame.assign(effective_share=100 * frame['effective_share'])
  shown = shown.rename(columns=_HEADINGS)
  ratios = [
    (frame[column] / frame['kl']).median()
    for column in ('kl_expansion', 'kl_paper', 'control_kl')
  ]
  digits = {
    name: '{:.0f}' if i < 4 else '{:.3g}' for i, name in enumerate(shown)
  }
  lines = [
    '# Covariate shift of the clients',
    '',
    f'`{" ".join(arguments)}`',
    '',
    'What to look for: the approximation of theorem 2.2 (its terms put right)'
    " follows the KL divergence of a client's examples from all, and the"
    ' control, as many random ones of all, lies far below both.',
    '',
    f'In nats, between Gaussians of the first {pca_dim} principal components.'
    f' Median over clients, as a multiple of the KL: approximation'
    f' {ratios[0]:.3g}, as printed in the paper {ratios[1]:.3g}, control'
    f' {ratios[2]:.3g}.',
    '',
    '| ' + ' | '.join(shown) + ' |',
    '|' + '---:|' * len(shown.columns),
  ]
  for _, row in shown.iterrows():
    cells = [
      '-' if np.isnan(value) else digits[name].format(value)
      for name, value in row.items()
    ]
    lines.append('| ' + ' | '.join(cells) + ' |')
  return '\n'.join(lines) + '\n'


if __name__ == '__main__':
  # Not `app.run`, for the reason given in `launchers.train`.
  define_flags(flags.FLAGS)
  flags.adopt_module_key_flags(train_flags)  # So that --help shows them.
  app.define_help_flags()
  main(app.parse_flags_with_usage(sys.argv))
