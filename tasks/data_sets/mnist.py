"""MNIST: 70,000 handwritten digits.

Inputs are float32 [70000, 28, 28, 1] in [0, 1], classes 0..9. The defaults are
those of FeDABoost, section 5.
"""

from tff_fair.tasks import images
from tff_fair.tasks import sources

_FILE_NAME = 'mnist.npz'
_FILE = sources.Download(
  'https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz',
  '731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1',
)


def _download():
  path = f'{sources.KERAS_CACHE}/{_FILE_NAME}'
  return images.read_archive(sources.download(_FILE, path))


DATA_SET = images.data_set(
  'mnist',
  file_name=_FILE_NAME,
  download=_download,
  image_shape=(28, 28),
  num_classes=10,
  num_clients=264,
  dirichlet_alpha=0.2,
  model='mlp_fedaboost',
)
