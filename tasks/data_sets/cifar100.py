"""CIFAR-100: 60,000 small photographs of a hundred kinds of things.

Inputs are float32 [60000, 32, 32, 3] in [0, 1], classes 0..99, the fine labels.
The defaults are those of FedQuad's experiments.
"""

from tasks import images

DATA_SET = images.data_set(
  'cifar100',
  file_name='cifar100.npz',
  keras_name='cifar100',
  image_shape=(32, 32, 3),
  num_classes=100,
  num_clients=10,
  dirichlet_alpha=0.5,
  model='cnn_fedquad',
)
