"""FedQuad: clients keep their classes compact, and apart from each other.

"FedQuad: Federated Stochastic Quadruplet Learning to Mitigate Data
Heterogeneity" (2025). Clients add a loss of four examples' embeddings to
cross-entropy: an anchor, another example of its class, and one of each of two
further classes. Equation numbers are the paper's.

Where the paper contradicts itself, tables and equations take precedence, and
the other reading is an option: distances are not squared (equation 5; Algorithm
1 squares them), and quadruplets are drawn again for each epoch (the list of
contributions says "offline"). Its baselines are in `metric_learning.py` and
`moon.py`.
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


def build_fedquad(
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
  quadruplet_weight: Annotated[float, Limits(minimum=0), Symbol('β')] = 0.5,
  margins: Sequence[float] = (1.0, 0.5),
  squared: Annotated[bool, Unless(quadruplet_weight=0.0)] = False,
  use_ce: bool = True,
  resample: Annotated[
    Literal['epoch', 'once'], Unless(quadruplet_weight=0.0)
  ] = 'epoch',
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds FedQuad: FedAvg of clients that add a quadruplet loss.

  The server takes `w <- sum_i n_i w_i / sum_i n_i`; the clients minimise

      loss = mean CE(F(x_a), y) + beta mean q,
      q = v1 [d(z_a, z_p) - d(z_a, z_n1) + m1]_+
        + v2 [d(z_a, z_p) - d(z_a, z_n2) + m2]_+

  over a minibatch of anchors, each of the client's examples once an epoch, with
  z their embeddings (equations 3 to 5). The other three are drawn from the
  client's own examples, see `client.sample_quadruplets`; with one class nothing
  is drawn (v1 = v2 = 0), with two v2 = 0. All four pass through the model in
  training mode, each role separately if it has batch normalisation: an anchor
  without a positive then stands in for one in the statistics of that batch.

  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    model_fn: Builds a model with an output `embedding`, not normalised.
    client_optimizer: The paper's is Adam at 1e-3 with a weight decay of 1e-5.
    batch_size: Anchors a minibatch; the last, shorter one is kept. This default
      and those of `local_epochs`, `quadruplet_weight` and `margins` are the
      paper's.
    focal_gamma: As in `build_fed_avg`; no effect without `use_ce`.
    quadruplet_weight: Factor on the quadruplet loss; at 0 this is FedAvg bit
      for bit.
    margins: Of the first and the second negative.
    squared: Distances are squared, as in Algorithm 1.
    use_ce: Cross-entropy is part of the loss; without it the nearest class
      centroid classifies. The classifier is then not trained, not even by
      weight decay; `build_class_centroids` builds its replacement.
    resample: Quadruplets are drawn for each epoch, or once a round.

  Returns:
    A `FairLearningProcess`. Its metrics under `client_work` are FedAvg's, and
    `cross_entropy` (or the focal loss), `quadruplet_loss` (mean q), and
    `v1_share` and `v2_share` of the anchors; with a weight of 0, FedAvg's
    alone.

  Raises:
    ValueError: Also if the model has no embedding, or no loss is left.
  """
  shared = arguments.check_arguments(build_fedquad, locals())
  checks.check_margins(margins)
  arguments.check_use_ce(use_ce, 'quadruplet_weight', quadruplet_weight)
  model = models.StatelessModel(model_fn)
  client.check_embedding('build_fedquad', model)
  objective = client.quadruplet_objective(
    model.num_classes,
    weight=quadruplet_weight,
    margins=margins,
    squared=squared,
    use_ce=use_ce,
    focal_gamma=focal_gamma,
    resample=resample,
  )
  return shared.fed_avg(model, objective)
