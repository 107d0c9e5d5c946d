"""Scores beside those of the training: unseen clients, and fine-tuning."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tff_fair import tasks
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import evaluation
from tff_fair.launchers.runs import fine_tuning


class _Group(NamedTuple):
  """Clients: how they are scored, and how they fine-tune, if they do."""

  evaluator: evaluation.Evaluator
  fine_tuning: fine_tuning.FineTuning | None


def build(
  settings: Mapping[str, Any],
  task: tasks.Task,
  statistics: Mapping[str, Any] | None,
  evaluator: evaluation.Evaluator,
) -> Callable[[Any, Any, int], evaluation.Scores]:
  """Builds what flags ask for beside the scores of the clients' models.

  Arguments as of a `training.Run`; the evaluator is that of its clients.

  Returns:
    `(global weights, class centroids or None, number of rounds so far) ->
    scores` with the keys `unseen`, `fine_tuned` and `fine_tuned_unseen`, as far
    as they are asked for.

  Raises:
    ValueError: If a setting is refused.
  """

  def group(evaluator, *clients):
    epochs = settings['fine_tune_epochs']
    return _Group(
      evaluator, fine_tuning.build(settings, *clients) if epochs else None
    )

  groups = {'fine_tuned': group(evaluator, task, statistics)}
  if task.unseen is not None and settings['score_unseen']:
    own = building.gather_statistics(settings, task.unseen)
    groups['fine_tuned_unseen'] = group(
      evaluation.build_evaluator(task.unseen, own),
      *(task.unseen, own, task.num_clients),
    )

  def scores(weights, centroids, number):
    found = {}
    if 'fine_tuned_unseen' in groups:
      unseen = groups['fine_tuned_unseen'].evaluator
      found['unseen'] = unseen.evaluate_global(weights, centroids)
    for name, (scored_by, fine_tuned) in groups.items():
      if fine_tuned is not None:
        models = fine_tuned(weights, number)
        found[name] = scored_by.evaluate_each(models)
    return found

  return scores
