"""CIFAR-10: 60,000 small photographs.

Inputs are float32 [60000, 32, 32, 3] in [0, 1], classes 0..9. The defaults are
those of FeDABoost, section 5.
"""

import functools

from tff_fair.tasks import cifar
from tff_fair.tasks import images
from tff_fair.tasks import sources

_FILE = sources.Download(
  'https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz',
  '6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce',
)

DATA_SET = images.data_set(
  'cifar10',
  file_name='cifar10.npz',
  download=functools.partial(
    cifar.download,
    _FILE,
    'cifar-10-batches-py',
    train=[f'data_batch_{i}' for i in range(1, 6)],
    test='test_batch',
    labels=b'labels',
  ),
  image_shape=(32, 32, 3),
  num_classes=10,
  num_clients=196,
  dirichlet_alpha=0.4,
  model='cnn_cifar_gn',
)
