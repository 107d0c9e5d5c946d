"""The content of summary.json, with the code and machine that trained a run."""

import functools
import pathlib
import platform
import subprocess
from typing import Any

import numpy as np

import tff_fair
from tff_fair import metrics
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import evaluation
from tff_fair.launchers.runs import groups
from tff_fair.launchers.runs import private_training
from tff_fair.launchers.runs import round_metrics

# What stays as it is if a later start trains nothing.
_OF_TRAINING = (
  'version',
  'median_seconds_per_round',
  'cpu_seconds',
  'processor',
)
# FeDABoost averages the variance of the clients' F1 over about ten rounds.
_WINDOW = 10
_WINDOWS = ('client_f1_variance', 'client_f1_own_labels_variance')
_ROOT = pathlib.Path(tff_fair.__file__).parents[1]
_CPUINFO = pathlib.Path('/proc/cpuinfo')
_VECTORS = {'avx512f': 'AVX-512', 'avx2': 'AVX2', 'avx': 'AVX'}


def summarize(run: Any) -> dict[str, Any]:
  """Summarizes a `training.Run` after its last evaluation."""
  # From the file: the last round may have been before this start.
  rounds = run.directory.read_metrics()
  scores = evaluation.metric_columns(run.scores, run.is_scored)
  summary = {
    'version': code_version(),
    'algorithm': run.settings['algorithm'],
    'task': run.settings['task'],
    'rounds': run.done,
    'final': {
      **scores,
      **distances.last(rounds),
      **groups.metric_columns(run.groups),
      **private_training.after(run.accounting, run.done),
    },
    **{f'{name}_window': _window(rounds[name]) for name in _WINDOWS},
    'dropped': round_metrics.dropped(rounds),
    # Only rounds since the last start.
    'median_seconds_per_round': float(np.median(run.seconds))
    if run.seconds
    else None,
    'cpu_seconds': run.cpu_seconds if run.seconds else None,
    'processor': processor_name() if run.seconds else None,
  }
  if not run.seconds:
    summary.update(run.directory.read_summary(_OF_TRAINING))
  if run.settings['score_last'] is not None and not run.stop:
    summary['score_last'] = run.settings['score_last']
  if run.stop:
    summary['stopped_early'] = run.stop._asdict()
  positive = groups.positive_name(run.task)
  summary.update(groups.describe(run.groups, positive))
  if run.notes:
    summary['notes'] = list(run.notes)
  return summary


@functools.cache
def code_version() -> str:
  """Returns the version of tff-fair, in a clone with the commit.

  For example '0.1.0' of an installation, '0.1.0+c4737ab' of a clone, and
  '0.1.0+c4737ab.changed' of a clone whose tracked files differ from the commit,
  when this was first asked.
  """
  commit = _commit()
  return f'{tff_fair.__version__}+{commit}' if commit else tff_fair.__version__


def processor_name() -> str:
  """Returns the model of the processor, as the operating system calls it.

  And its widest vector instructions: with others sums are rounded differently.
  """
  try:
    lines = _CPUINFO.read_text().splitlines()
  except (OSError, ValueError):  # Not Linux.
    lines = []
  known = dict(map(_name_and_value, reversed(lines)))  # Of the first processor.
  model = known.get('model name')
  if not model:
    return platform.processor() or platform.machine()
  flags = known.get('flags', '').split()
  widest = [name for flag, name in _VECTORS.items() if flag in flags][:1]
  return ', '.join([model, *widest])


def _name_and_value(line) -> tuple[str, str]:
  name, _, value = line.partition(':')
  return name.strip(), value.strip()


def _window(column) -> dict[str, float]:
  """The mean of the last evaluations, with its confidence interval."""
  values = column.dropna()[-_WINDOW:]
  interval = metrics.mean_with_interval(values)
  return {'evaluations': len(values), **interval._asdict()}


def _commit() -> str:
  if not (_ROOT / '.git').exists():
    return ''
  try:
    found = subprocess.run(
      ['git', 'describe', '--always', '--exclude=*', '--dirty=.changed'],
      cwd=_ROOT,
      capture_output=True,
      text=True,
      timeout=30,
      check=True,
    )
  except (OSError, subprocess.SubprocessError):  # No git, or no commit.
    return ''
  return found.stdout.strip()
