"""Evaluates the models of a run, and arranges the scores as in its files.

The scores of an evaluation are `metrics.ClientScores` by the name of the model:
`global`, and `personal` if clients have personal models. The scores of a client
are those of its personal model, if it has one. `unseen` are those of the global
model for the clients that take no part in the training, if there are any;
`fine_tuned` and `fine_tuned_unseen` are those after each client has trained the
global model further. `holdout` are those of the clients' models on what is held
out of training.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
import warnings

import numpy as np
import tensorflow_federated as tff

from tff_fair import algorithms
from tff_fair import fairness
from tff_fair import metrics
from tff_fair import tasks
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.runs import errors

# Characters of a client's name in a line; with what is before it, the line has
# at most 80.
_NAME_WIDTH = 30
# Clients in a sentence.
_MOST_NAMED = 5

_UNSEEN_MODELS = {
  'unseen': 'global model',
  'fine_tuned_unseen': 'fine-tuned model',
}
# Scores by the nearest centroid, if that classifies.
_GLOBAL = ('global', 'unseen', 'holdout')
# Models of the clients that are trained.
_MODELS = ('global', 'personal')
# Other scores, and what is told of their accuracies.
_FURTHER = ('unseen', 'fine_tuned', 'fine_tuned_unseen', 'holdout')
# Of clients that are trained, too.
_OF_TRAINED = (*_MODELS, 'fine_tuned', 'holdout')
_FURTHER_STATISTICS = ('mean', 'min', 'worst10')

Evaluator = metrics.Evaluator | metrics.ServerEvaluator
Scores = Mapping[str, metrics.ClientScores]


def build_evaluator(
  task: tasks.Task, statistics: Mapping[str, Any] | None, part: str = 'test'
) -> Evaluator:
  """Builds an evaluator on the server's examples, else on the clients'.

  The part is 'test', or 'holdout' for what is held out for choosing between
  runs. With channel statistics, each client's data are normalised by its own.

  Raises:
    ValueError: If nothing is held out.
  """
  if part == 'holdout' and not len(task.validation.y):
    flag = 'validation' if task.has_server_test else 'holdout'
    raise ValueError(
      f'{flag}_fraction must be above 0 to choose between runs, found no such'
      ' examples.'
    )
  if task.has_server_test:
    pooled = task.global_test if part == 'test' else task.validation
    return metrics.ServerEvaluator(task.model_fn(), pooled, task.num_clients)
  parts = [examples(task, part, i, statistics) for i in range(task.num_clients)]
  return metrics.Evaluator(task.model_fn(), parts)


def examples(
  task: tasks.Task,
  part: str,
  client_id: int,
  statistics: Mapping[str, Any] | None,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns `(x, y)` of a client's part, normalised by its own statistics."""
  x, y = getattr(task.examples(client_id), part)
  if statistics is not None:
    x = algorithms.normalize_for_client(x, statistics, client_id)
  return x, y


def evaluate(
  evaluator: Evaluator,
  process: tff.learning.templates.LearningProcess,
  state: Any,
  class_centroids: Callable[[Any], Mapping[str, Any]] | None,
  further: Callable[[Any, Any], Scores] = lambda weights, centroids: {},
  holdout: Evaluator | None = None,
) -> dict[str, metrics.ClientScores]:
  """Scores the global model and, if there are any, the personal models.

  With a function from global weights to class centroids, an example is assigned
  to the class of the nearest centroid. `further` computes other scores from the
  global weights and the centroids; `holdout` scores the clients' models on
  other examples.

  Raises:
    DivergedError: If no client has finite embeddings for the centroids.
  """
  weights = process.get_model_weights(state)
  centroids = class_centroids and class_centroids(weights)
  if centroids and not np.any(centroids['counts']):
    raise errors.diverged('the embeddings of no client are finite')
  if centroids and centroids['num_rejected_clients']:
    warnings.warn(
      f'{centroids["num_rejected_clients"]} clients are left out of the class'
      ' centroids because their embeddings are not finite.',
      stacklevel=2,
    )
  scores = {'global': evaluator.evaluate_global(weights, centroids)}
  table = None
  if isinstance(process, algorithms.PersonalizedLearningProcess):
    table = process.client_model_table(state)
    scores['personal'] = evaluator.evaluate_clients(table)
  scores.update(further(weights, centroids))
  if holdout is not None:
    scores['holdout'] = (
      holdout.evaluate_global(weights, centroids)
      if table is None
      else holdout.evaluate_clients(table)
    )
  return scores


def check_finite(
  scores: Scores,
  is_scored: Sequence[bool],
  names: Sequence[str],
  number: int,
  *,
  has_global_loss: bool = True,
) -> None:
  """Checks that the models after round `number` have finite losses and scores.

  Free riders, attackers, and clients without test examples do not count; there
  is no global loss if the nearest centroid classified, but there are scores.

  Raises:
    DivergedError: If the loss of a model is NaN or infinite, or its outputs are
      NaN.
  """
  for model, model_scores in scores.items():
    has_loss = has_global_loss or model not in _GLOBAL
    bad = _without_score(model, model_scores, is_scored)
    if has_loss:
      counts = _counts(model, model_scores, is_scored)
      bad = np.flatnonzero(counts & ~np.isfinite(model_scores.loss))
    if not bad.size:
      continue
    whose = 'the global model'
    if model == 'personal':
      whose = f'the personal model of {listed(bad, names)}'
    elif model == 'fine_tuned':
      whose = f'the fine-tuned model of {listed(bad, names)}'
    elif model == 'holdout':
      whose = f'the model, on what is held out, of {listed(bad, names)}'
    elif model in _FURTHER:
      whose = f'the {_UNSEEN_MODELS[model]} on an unseen client'
    what = 'the loss' if has_loss else 'an embedding'
    raise errors.diverged(
      f'{what} of {whose} is not finite after round {number}'
    )


def _counts(model, scores, is_scored) -> np.ndarray:
  """Returns which clients' scores count for a model, bool[k]."""
  counts = scores.num_examples > 0
  return counts & np.asarray(is_scored) if model in _OF_TRAINED else counts


def _without_score(model, scores, is_scored) -> np.ndarray:
  """The clients for which a model gives NaN."""
  counts = _counts(model, scores, is_scored)
  return np.flatnonzero(counts & np.isnan(scores.accuracy))


def averaged_rounds(settings: Mapping[str, Any]) -> range:
  """Returns the rounds over which the final accuracies are averaged.

  The last `score_last` rounds; without it, the last one.
  """
  rounds = settings['rounds']
  return range(rounds - (settings['score_last'] or 1) + 1, rounds + 1)


def with_accuracies(
  scores: Scores, accuracies: np.ndarray
) -> dict[str, metrics.ClientScores]:
  """Replaces the clients' accuracies, by means over rounds, float64[k]."""
  model = 'personal' if 'personal' in scores else 'global'
  return {**scores, model: scores[model]._replace(accuracy=accuracies)}


def of_clients(scores: Scores) -> metrics.ClientScores:
  """Returns those of the personal models if there are any, else the global."""
  return scores.get('personal', scores['global'])


def metric_columns(
  scores: Scores, is_scored: Sequence[bool]
) -> dict[str, float]:
  """Returns the columns of metrics.csv that hold the scores.

  Attackers, and clients without training data, free riders, are excluded from
  the statistics over clients. Unseen clients need no data. Where a model gives
  NaN for a client, there are no statistics: those of the others would be too
  good.
  """
  columns = {}
  for model in filter(scores.__contains__, _MODELS):
    for name, value in scores[model].pooled.items():
      columns[f'{model}_{name}'] = value
  own = 'personal' if 'personal' in scores else 'global'
  for name in train_flags.CLIENT_SCORES:
    values = np.where(is_scored, getattr(scores[own], name), np.nan)
    if _without_score(own, scores[own], is_scored).size:
      values[:] = np.nan
    for statistic, value in metrics.client_statistics(values).items():
      columns[f'client_{name}_{statistic}'] = value
  for model in filter(scores.__contains__, _FURTHER):
    values = scores[model].accuracy
    if model in _OF_TRAINED:
      values = np.where(is_scored, values, np.nan)
    if _without_score(model, scores[model], is_scored).size:
      values = np.full_like(values, np.nan)
    found = metrics.client_statistics(values)
    for statistic in _FURTHER_STATISTICS:
      columns[f'{model}_accuracy_{statistic}'] = found[statistic]
  return columns


def client_columns(scores: Scores) -> dict[str, Any]:
  """Returns the columns of client_scores.csv, without the round."""
  client_scores = of_clients(scores)
  return {
    'client_id': range(len(client_scores.accuracy)),
    'accuracy': client_scores.accuracy,
    'f1': client_scores.f1,
    'loss': client_scores.loss,
    **fine_tuned_column(scores),
  }


def fine_tuned_column(scores: Scores) -> dict[str, np.ndarray]:
  """Returns each client's accuracy after fine-tuning, if that is measured."""
  if 'fine_tuned' not in scores:
    return {}
  return {'fine_tuned_accuracy': scores['fine_tuned'].accuracy}


def honest_accuracies(scores: Scores, is_scored: Sequence[bool]) -> np.ndarray:
  """Returns the clients' accuracies, float64[k]; NaN where none counts."""
  return np.where(is_scored, of_clients(scores).accuracy, np.nan)


def worst_client(
  scores: Scores, is_scored: Sequence[bool], names: Sequence[str]
) -> str:
  """Describes the lowest accuracy that counts, and whose it is.

  For example `0.4333, client 3 (North)`; empty if no client is worse than
  another.
  """
  accuracy = honest_accuracies(scores, is_scored)
  known = accuracy[~np.isnan(accuracy)]
  if not known.size or known.min() == known.max():
    return ''
  client_id = np.nanargmin(accuracy)
  return f'{accuracy[client_id]:.4f}, {listed([client_id], names)}'


def note_of_few_examples(task: tasks.Task, is_scored: Sequence[bool]) -> str:
  """Says how many clients are scored on very few examples; else empty."""
  if task.has_server_test:
    return ''
  sizes = np.array([len(split.test) for split in task.splits])
  sizes = sizes[np.asarray(is_scored) & (sizes > 0)]
  few = sizes[sizes < fairness.FEWEST_TEST_EXAMPLES]
  if not few.size:
    return ''
  return (
    f'{few.size} of {sizes.size} clients have fewer than'
    f' {fairness.FEWEST_TEST_EXAMPLES} test examples, the fewest {few.min()}:'
    ' the score of such a client says little, as the best or the worst one,'
    ' too.'
  )


def listed(client_ids: Sequence[int], names: Sequence[str]) -> str:
  """Lists clients in a sentence, such as `client 3 (North), client 5 (South)`.

  Of many only the first are named. `names` is empty if clients have none.
  """
  shown = ', '.join(_titled(i, names) for i in client_ids[:_MOST_NAMED])
  more = len(client_ids) - _MOST_NAMED
  return f'{shown} and {more} more' if more > 0 else shown


def _titled(client_id, names) -> str:
  if not names:
    return f'client {client_id}'
  name = client_names.one_line(names[client_id], _NAME_WIDTH)
  return f'client {client_id} ({name})'
