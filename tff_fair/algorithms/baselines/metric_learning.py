"""FedQuad's baselines: FedAvg whose clients learn a metric in other ways.

SupConFL, TripletFL and QuadrupletFL of FedQuad's tables. Their client minimises
`CE + metric_weight * metric loss` of the model's embedding; the losses and
their sources are in `losses.metric_learning`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition
from tff_fair.algorithms.baselines import fed_avg


def build_supcon_fl(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int | None = None,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 5,
  batch_size: int = 128,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  metric_weight: float = 0.5,
  temperature: float = 0.07,
  use_ce: bool = True,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> composition.FairLearningProcess:
  """Builds SupConFL: `losses.supervised_contrastive_loss` of each minibatch.

  Args:
    model_fn: As in `build_fedquad`, like all that is not explained here.
    num_clients: See there.
    client_optimizer: See there.
    local_epochs: See there.
    batch_size: See there.
    seed: See there.
    client_learning_rate_fn: See there.
    focal_gamma: See there.
    metric_weight: Factor on the metric loss, not negative; at 0 this is FedAvg
      bit for bit.
    temperature: Of the contrastive loss, positive.
    use_ce: Whether cross-entropy is part of the loss. The accuracies that the
      paper prints look as if it were not; it does not say.
    server_optimizer: See there.
    model_aggregator: See there.

  Returns:
    A `FairLearningProcess`. Its metrics under `client_work` are FedAvg's, and
    `cross_entropy` and `contrastive_loss`; with a weight of 0, FedAvg's alone.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range, a choice unknown, or the model has
      no embedding.
  """
  composition.check_arguments(**locals(), plain_data=True)
  checks.check_real('metric_weight', metric_weight, 0.0)
  checks.check_positive('temperature', temperature)
  composition.check_use_ce(use_ce, 'metric_weight', metric_weight)
  model = models.StatelessModel(model_fn)
  client.check_embedding('build_supcon_fl', model)
  objective = client.supervised_contrastive_objective(
    weight=metric_weight,
    temperature=temperature,
    use_ce=use_ce,
    focal_gamma=focal_gamma,
  )
  return fed_avg.compose_fed_avg(
    model,
    objective,
    num_clients=num_clients,
    client_optimizer=client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
    seed=seed,
    client_learning_rate_fn=client_learning_rate_fn,
    server_optimizer=server_optimizer,
    model_aggregator=model_aggregator,
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
  focal_gamma: float = 0.0,
  metric_weight: float = 0.5,
  margin: float = 1.0,
  mining: Literal['sampled', 'semihard', 'hard'] = 'sampled',
  use_ce: bool = True,
  resample: Literal['epoch', 'once'] = 'epoch',
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> composition.FairLearningProcess:
  """Builds TripletFL: `losses.triplet_loss` of sampled triplets.

  They are FedQuad's quadruplets without the second negative. FedQuad cites a
  loss that is a softmax of the two distances; the margin is what its text
  describes.

  Args:
    model_fn: As in `build_fedquad`, like all that is not explained here.
    num_clients: See there.
    client_optimizer: See there.
    local_epochs: See there.
    batch_size: See there.
    seed: See there.
    client_learning_rate_fn: See there.
    focal_gamma: See there.
    metric_weight: Factor on the metric loss, not negative; at 0 this is FedAvg
      bit for bit.
    margin: m, not negative.
    use_ce: Whether cross-entropy is part of the loss. The accuracies that the
      paper prints look as if it were not; it does not say.
    resample: See there.
    server_optimizer: See there.
    model_aggregator: See there.

  Returns:
    A `FairLearningProcess`. Its metrics under `client_work` are FedAvg's, and
    `cross_entropy`, `triplet_loss`, and `v1_share` and `v2_share` of the
    anchors; with a weight of 0, FedAvg's alone.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range, a choice unknown, or the model has
      no embedding.
  """
  composition.check_arguments(**locals(), plain_data=True)
  checks.check_real('metric_weight', metric_weight, 0.0)
  checks.check_real('margin', margin, 0.0)
  composition.check_use_ce(use_ce, 'metric_weight', metric_weight)
  checks.check_choice('resample', resample, client.RESAMPLE)
  model = models.StatelessModel(model_fn)
  client.check_embedding('build_triplet_fl', model)
  objective = client.triplet_objective(
    model.num_classes,
    weight=metric_weight,
    margin=margin,
    use_ce=use_ce,
    focal_gamma=focal_gamma,
    resample=resample,
  )
  return fed_avg.compose_fed_avg(
    model,
    objective,
    num_clients=num_clients,
    client_optimizer=client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
    seed=seed,
    client_learning_rate_fn=client_learning_rate_fn,
    server_optimizer=server_optimizer,
    model_aggregator=model_aggregator,
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
  focal_gamma: float = 0.0,
  metric_weight: float = 0.5,
  margins: Sequence[float] = (1.0, 0.5),
  use_ce: bool = True,
  resample: Literal['epoch', 'once'] = 'epoch',
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> composition.FairLearningProcess:
  """Builds QuadrupletFL: `losses.classic_quadruplet_loss` of quadruplets.

  They are FedQuad's. The classic loss squares distances, and compares the two
  negatives with each other.

  Args:
    model_fn: As in `build_fedquad`, like all that is not explained here.
    num_clients: See there.
    client_optimizer: See there.
    local_epochs: See there.
    batch_size: See there.
    seed: See there.
    client_learning_rate_fn: See there.
    focal_gamma: See there.
    metric_weight: Factor on the metric loss, not negative; at 0 this is FedAvg
      bit for bit.
    margins: m1 and m2, not negative.
    use_ce: Whether cross-entropy is part of the loss. The accuracies that the
      paper prints look as if it were not; it does not say.
    resample: See there.
    server_optimizer: See there.
    model_aggregator: See there.

  Returns:
    A `FairLearningProcess`. Its metrics under `client_work` are FedAvg's, and
    `cross_entropy`, `quadruplet_loss`, and `v1_share` and `v2_share` of the
    anchors; with a weight of 0, FedAvg's alone.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range, a choice unknown, or the model has
      no embedding.
  """
  composition.check_arguments(**locals(), plain_data=True)
  checks.check_real('metric_weight', metric_weight, 0.0)
  checks.check_margins(margins)
  composition.check_use_ce(use_ce, 'metric_weight', metric_weight)
  checks.check_choice('resample', resample, client.RESAMPLE)
  model = models.StatelessModel(model_fn)
  client.check_embedding('build_quadruplet_fl', model)
  objective = client.classic_quadruplet_objective(
    model.num_classes,
    weight=metric_weight,
    margins=margins,
    use_ce=use_ce,
    focal_gamma=focal_gamma,
    resample=resample,
  )
  return fed_avg.compose_fed_avg(
    model,
    objective,
    num_clients=num_clients,
    client_optimizer=client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
    seed=seed,
    client_learning_rate_fn=client_learning_rate_fn,
    server_optimizer=server_optimizer,
    model_aggregator=model_aggregator,
  )
