"""Keras client models of the papers, and Keras models as pure functions."""

from tff_fair.models.client_models import cnn_cifar_gn
from tff_fair.models.client_models import cnn_corefed
from tff_fair.models.client_models import cnn_corefed_plain
from tff_fair.models.client_models import cnn_fedakd
from tff_fair.models.client_models import cnn_fedakd_deep
from tff_fair.models.client_models import cnn_fedquad
from tff_fair.models.client_models import cnn_fedquad_group_norm
from tff_fair.models.client_models import cnn_fedquad_momentum_09
from tff_fair.models.client_models import cnn_femnist
from tff_fair.models.client_models import cnn_lenet
from tff_fair.models.client_models import mlp_cffl_adult
from tff_fair.models.client_models import mlp_cffl_mnist
from tff_fair.models.client_models import mlp_cffl_mnist_padded
from tff_fair.models.client_models import mlp_corefed
from tff_fair.models.client_models import mlp_corefed_standardised
from tff_fair.models.client_models import mlp_fedaboost
from tff_fair.models.keras_weights import assign as assign_weights
from tff_fair.models.neurons import Neurons
from tff_fair.models.outputs import num_classes
from tff_fair.models.outputs import of_call as class_outputs
from tff_fair.models.paired import PairedModel
from tff_fair.models.partial import PartialModel
from tff_fair.models.record_models import gru_ehr
from tff_fair.models.stateless import StatelessModel

__all__ = [
  'Neurons',
  'PairedModel',
  'PartialModel',
  'StatelessModel',
  'assign_weights',
  'class_outputs',
  'cnn_cifar_gn',
  'cnn_corefed',
  'cnn_corefed_plain',
  'cnn_fedakd',
  'cnn_fedakd_deep',
  'cnn_fedquad',
  'cnn_fedquad_group_norm',
  'cnn_fedquad_momentum_09',
  'cnn_femnist',
  'cnn_lenet',
  'gru_ehr',
  'mlp_cffl_adult',
  'mlp_cffl_mnist',
  'mlp_cffl_mnist_padded',
  'mlp_corefed',
  'mlp_corefed_standardised',
  'mlp_fedaboost',
  'num_classes',
]
