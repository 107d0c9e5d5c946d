"""CIFAR-10: 60,000 small photographs.

Inputs are float32 [60000, 32, 32, 3] in [0, 1], classes 0..9. The defaults are
those of FeDABoost, section 5.
"""

from tasks import images

DATA_SET = images.data_set(
  'cifar10',
  file_name='cifar10.npz',
  keras_name='cifar10',
  image_shape=(32, 32, 3),
  num_classes=10,
  num_clients=196,
  dirichlet_alpha=0.4,
  model='cnn_cifar_gn',
)
