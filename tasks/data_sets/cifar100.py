"""CIFAR-100: 60,000 small photographs of a hundred kinds of things.

Inputs are float32 [60000, 32, 32, 3] in [0, 1], classes 0..99, the fine labels.
The defaults are those of FedQuad's experiments.
"""

import functools

from tff_fair.tasks import cifar
from tff_fair.tasks import images
from tff_fair.tasks import sources

_FILE = sources.Download(
  'https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz',
  '85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7',
)

DATA_SET = images.data_set(
  'cifar100',
  file_name='cifar100.npz',
  download=functools.partial(
    cifar.download,
    _FILE,
    'cifar-100-python',
    train=['train'],
    test='test',
    labels=b'fine_labels',
  ),
  image_shape=(32, 32, 3),
  num_classes=100,
  num_clients=10,
  dirichlet_alpha=0.5,
  model='cnn_fedquad',
)
