"""The client side: data, local training, objectives and client updates."""

from tff_fair.client.attackers import ATTACKS
from tff_fair.client.attackers import Attackers
from tff_fair.client.attackers import with_attackers
from tff_fair.client.client_data import build_client_data
from tff_fair.client.client_data import client_data_type
from tff_fair.client.client_data import count_classes
from tff_fair.client.client_data import gather_examples
from tff_fair.client.client_data import has_examples
from tff_fair.client.client_work import ClientOutput
from tff_fair.client.client_work import ClientUpdate
from tff_fair.client.client_work import build_client_work
from tff_fair.client.clients import Clients
from tff_fair.client.clients import from_arrays
from tff_fair.client.clients import from_client_data
from tff_fair.client.clients import from_dataframe
from tff_fair.client.clients import from_image_folder
from tff_fair.client.clients import from_records
from tff_fair.client.data_source import ClientDataSource
from tff_fair.client.embeddings import check_embedding
from tff_fair.client.embeddings import class_sums
from tff_fair.client.embeddings import embed_examples
from tff_fair.client.embeddings import mean_embedding
from tff_fair.client.fine_tuning import build_fine_tuning
from tff_fair.client.free_riders import FreeRiders
from tff_fair.client.free_riders import with_free_riders
from tff_fair.client.full_batch import batch_losses
from tff_fair.client.full_batch import fisher_trace
from tff_fair.client.full_batch import logits_of_examples
from tff_fair.client.full_batch import mean_gradient
from tff_fair.client.full_batch import mean_loss
from tff_fair.client.gradient_clipping import with_gradient_clipping
from tff_fair.client.local_training import EarlyStopping
from tff_fair.client.local_training import LocalResult
from tff_fair.client.local_training import build_local_training
from tff_fair.client.local_training import initial_optimizer_state
from tff_fair.client.metric_objectives import RESAMPLE
from tff_fair.client.metric_objectives import classic_quadruplet_objective
from tff_fair.client.metric_objectives import mined_triplet_objective
from tff_fair.client.metric_objectives import model_contrastive_objective
from tff_fair.client.metric_objectives import quadruplet_objective
from tff_fair.client.metric_objectives import supervised_contrastive_objective
from tff_fair.client.metric_objectives import triplet_objective
from tff_fair.client.nesterov import build_nesterov_sgd
from tff_fair.client.objectives import Objective
from tff_fair.client.objectives import classification
from tff_fair.client.objectives import classification_objective
from tff_fair.client.objectives import cross_entropy
from tff_fair.client.objectives import distillation_objective
from tff_fair.client.objectives import focal_objective
from tff_fair.client.objectives import linear_objective
from tff_fair.client.objectives import proportional_objective
from tff_fair.client.objectives import proximal_objective
from tff_fair.client.quadruplets import Quadruplets
from tff_fair.client.quadruplets import sample_quadruplets
from tff_fair.client.update_bound import bound_update
from tff_fair.client.weight_decay import with_weight_decay

__all__ = [
  'ATTACKS',
  'RESAMPLE',
  'Attackers',
  'ClientDataSource',
  'ClientOutput',
  'ClientUpdate',
  'Clients',
  'EarlyStopping',
  'FreeRiders',
  'LocalResult',
  'Objective',
  'Quadruplets',
  'batch_losses',
  'bound_update',
  'build_client_data',
  'build_client_work',
  'build_fine_tuning',
  'build_local_training',
  'build_nesterov_sgd',
  'check_embedding',
  'class_sums',
  'classic_quadruplet_objective',
  'classification',
  'classification_objective',
  'client_data_type',
  'count_classes',
  'cross_entropy',
  'distillation_objective',
  'embed_examples',
  'fisher_trace',
  'focal_objective',
  'from_arrays',
  'from_client_data',
  'from_dataframe',
  'from_image_folder',
  'from_records',
  'gather_examples',
  'has_examples',
  'initial_optimizer_state',
  'linear_objective',
  'logits_of_examples',
  'mean_embedding',
  'mean_gradient',
  'mean_loss',
  'mined_triplet_objective',
  'model_contrastive_objective',
  'proportional_objective',
  'proximal_objective',
  'quadruplet_objective',
  'sample_quadruplets',
  'supervised_contrastive_objective',
  'triplet_objective',
  'with_attackers',
  'with_free_riders',
  'with_gradient_clipping',
  'with_weight_decay',
]
