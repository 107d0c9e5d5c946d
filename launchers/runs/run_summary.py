"""The content of summary.json."""

from typing import TYPE_CHECKING, Any

import numpy as np

from tff_fair import metrics
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import evaluation
from tff_fair.launchers.runs import provenance
from tff_fair.launchers.runs import round_metrics

if TYPE_CHECKING:
  from tff_fair.launchers.runs import training

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


def summarize(run: 'training.Run') -> dict[str, Any]:
  """Summarizes a run after its last evaluation."""
  # From the file: the last round may have been before this start.
  rounds = run.directory.read_metrics()
  scores = evaluation.metric_columns(run.scores, run.has_data)
  summary = {
    'version': provenance.code_version(),
    'algorithm': run.settings['algorithm'],
    'task': run.settings['task'],
    'rounds': run.done,
    'final': {**scores, **distances.last(rounds)},
    **{f'{name}_window': _window(rounds[name]) for name in _WINDOWS},
    'dropped': round_metrics.dropped(rounds),
    # Only rounds since the last start.
    'median_seconds_per_round': _median(run.seconds),
    'cpu_seconds': run.cpu_seconds if run.seconds else None,
    'processor': provenance.processor_name() if run.seconds else None,
  }
  if not run.seconds:
    summary.update(run.directory.read_summary(_OF_TRAINING))
  if run.settings['score_last'] is not None and not run.stop:
    summary['score_last'] = run.settings['score_last']
  if run.stop:
    summary['stopped_early'] = run.stop._asdict()
  if run.notes:
    summary['notes'] = list(run.notes)
  return summary


def _window(column) -> dict[str, float]:
  """The mean of the last evaluations, with its confidence interval."""
  values = column.dropna()[-_WINDOW:]
  interval = metrics.mean_with_interval(values)
  return {'evaluations': len(values), **interval._asdict()}


def _median(seconds) -> float | None:
  return float(np.median(seconds)) if seconds else None
