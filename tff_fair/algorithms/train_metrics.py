"""Metrics of a round under the name that TFF's training program expects."""

import collections

import tensorflow_federated as tff


def with_train_metrics(
  process: tff.learning.templates.LearningProcess,
) -> tff.learning.templates.LearningProcess:
  """Puts what clients measured under `train`, as TFF's own processes do.

  `tff.learning.programs.train_model` trains any process of this library. For
  its `train_metrics_manager`, however, it reads the metrics from
  `client_work['train']`, and fails if there are none. The manager receives them
  as `model_metrics`, next to those of the other parts.

  Args:
    process: A process whose metrics have a part `client_work`.

  Returns:
    The same process with `client_work=OrderedDict(train=...)` in its metrics.
  """
  state_type, data_type = process.next.type_signature.parameter

  @tff.federated_computation(state_type, data_type)
  def next_fn(state, data):
    output = process.next(state, data)
    names = tff.structure.name_list(output.metrics.type_signature.member)
    metrics = collections.OrderedDict(
      (name, getattr(output.metrics, name)) for name in names
    )
    metrics['client_work'] = collections.OrderedDict(
      train=metrics['client_work']
    )
    return tff.learning.templates.LearningProcessOutput(
      output.state, tff.federated_zip(metrics)
    )

  return tff.learning.templates.LearningProcess(
    process.initialize,
    next_fn,
    process.get_model_weights,
    process.set_model_weights,
    get_hparams_fn=process.get_hparams,
    set_hparams_fn=process.set_hparams,
  )
