"""FedQuad's baselines: FedAvg whose clients learn a metric in other ways.

SupConFL, TripletFL and QuadrupletFL of FedQuad's tables. Their client minimises
`CE + metric_weight * metric loss` of the model's embedding; the losses and
their sources are in `losses.metric_learning`. FedQuad does not say whether its
baselines train by cross-entropy as well; the accuracies that it prints look as
if they did not.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol, Unless


def build_supcon_fl(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int | None = None,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 5,
  batch_size: int = 128,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  metric_weight: Annotated[float, Limits(minimum=0)] = 0.5,
  temperature: Annotated[
    float, Limits(above=0), Symbol('T'), Unless(metric_weight=0.0)
  ] = 0.07,
  use_ce: bool = True,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds SupConFL: `losses.supervised_contrastive_loss` of each minibatch.

  See `build_fedquad` for arguments and errors that are not listed here.

  Args:
    metric_weight: Factor on the metric loss; at 0 this is FedAvg bit for bit.
      FedQuad's paper gives no number.
    temperature: Temperature of the contrastive loss. Nor does the paper give
      this one.

  Returns:
    A `FairLearningProcess`. Its metrics under `client_work` are FedAvg's, and
    `cross_entropy` (or the focal loss) and `contrastive_loss`; with a weight of
    0, FedAvg's alone.
  """
  shared = arguments.check_arguments(build_supcon_fl, locals())

  def build_objective(num_classes):
    del num_classes  # The labels of the minibatch are enough.
    return client.supervised_contrastive_objective(
      weight=metric_weight,
      temperature=temperature,
      use_ce=use_ce,
      focal_gamma=focal_gamma,
    )

  return _build(
    'build_supcon_fl', shared, model_fn, build_objective, metric_weight, use_ce
  )


def build_triplet_fl(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int | None = None,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 5,
  batch_size: int = 128,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  metric_weight: Annotated[float, Limits(minimum=0)] = 0.5,
  margin: Annotated[
    float, Limits(minimum=0), Symbol('m'), Unless(metric_weight=0.0)
  ] = 1.0,
  mining: Annotated[
    Literal['sampled', 'semihard', 'hard'], Unless(metric_weight=0.0)
  ] = 'sampled',
  use_ce: bool = True,
  resample: Annotated[
    Literal['epoch', 'once'],
    Unless(mining='semihard'),
    Unless(mining='hard'),
    Unless(metric_weight=0.0),
  ] = 'epoch',
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds TripletFL: a triplet loss of sampled or mined triplets.

  FedQuad cites a loss that is a softmax of the two distances, and says neither
  its margin nor how triplets are chosen.
  See `build_fedquad` for arguments and errors that are not listed here.

  Args:
    metric_weight: Factor on the metric loss; at 0 this is FedAvg bit for bit.
      FedQuad's paper gives no number.
    margin: How much farther away than the positive a negative must be. Nor does
      the paper give this one.
    mining: Triplets are sampled as in FedQuad (sampled), or mined in each
      minibatch by the losses of TensorFlow Addons (semihard, hard). The sampled
      ones are without the second negative; see
      `client.mined_triplet_objective`.
    resample: Triplets are sampled for each epoch, or once a round.

  Returns:
    A `FairLearningProcess`. Its metrics under `client_work` are FedAvg's, and
    `cross_entropy` (or the focal loss), `triplet_loss`, and, of sampled
    triplets, `v1_share` and `v2_share` of the anchors; with a weight of 0,
    FedAvg's alone.
  """
  shared = arguments.check_arguments(build_triplet_fl, locals())
  common = dict(
    weight=metric_weight, margin=margin, use_ce=use_ce, focal_gamma=focal_gamma
  )

  def build_objective(num_classes):
    if mining == 'sampled':
      return client.triplet_objective(num_classes, resample=resample, **common)
    return client.mined_triplet_objective(mining, **common)

  return _build(
    'build_triplet_fl', shared, model_fn, build_objective, metric_weight, use_ce
  )


def build_quadruplet_fl(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int | None = None,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 5,
  batch_size: int = 128,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  metric_weight: Annotated[float, Limits(minimum=0)] = 0.5,
  margins: Sequence[float] = (1.0, 0.5),
  use_ce: bool = True,
  resample: Annotated[
    Literal['epoch', 'once'], Unless(metric_weight=0.0)
  ] = 'epoch',
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds QuadrupletFL: `losses.classic_quadruplet_loss` of quadruplets.

  They are sampled as in FedQuad. The classic loss squares distances, and
  compares the two negatives with each other.
  See `build_fedquad` for arguments and errors that are not listed here.

  Args:
    metric_weight: Factor on the metric loss; at 0 this is FedAvg bit for bit.
      FedQuad's paper gives no number.
    margins: Of the first and the second hinge; by default those of FedQuad's
      own loss.

  Returns:
    A `FairLearningProcess`. Its metrics under `client_work` are FedAvg's, and
    `cross_entropy` (or the focal loss), `quadruplet_loss`, and `v1_share` and
    `v2_share` of the anchors; with a weight of 0, FedAvg's alone.
  """
  shared = arguments.check_arguments(build_quadruplet_fl, locals())
  checks.check_margins(margins)

  def build_objective(num_classes):
    return client.classic_quadruplet_objective(
      num_classes,
      weight=metric_weight,
      margins=margins,
      use_ce=use_ce,
      resample=resample,
      focal_gamma=focal_gamma,
    )

  return _build(
    'build_quadruplet_fl',
    shared,
    model_fn,
    build_objective,
    metric_weight,
    use_ce,
  )


def _build(who, shared, model_fn, build_objective, metric_weight, use_ce):
  """FedAvg with an objective of the model's embedding."""
  arguments.check_use_ce(use_ce, 'metric_weight', metric_weight)
  model = models.StatelessModel(model_fn)
  client.check_embedding(who, model)
  return shared.fed_avg(model, build_objective(model.num_classes))
