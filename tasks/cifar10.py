"""Task 'cifar10': 60,000 small photographs.

Inputs are float32 [60000, 32, 32, 3] in [0, 1], classes 0..9. The defaults are
those of FeDABoost, section 5: 196 clients, Dirichlet with alpha 0.4.
"""

import tensorflow as tf

from tasks import images
from tasks import options as options_lib
from tasks import task


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task; see `tasks.images.build`.

  Args:
    options: The user's choices; the data folder may hold `cifar10.npz`.
  """
  return images.build(
    'cifar10',
    options.with_defaults(
      partition='dirichlet',
      num_clients=196,
      dirichlet_alpha=0.4,
      model='cnn_cifar_gn',
    ),
    file_name='cifar10.npz',
    keras_load_data=tf.keras.datasets.cifar10.load_data,
    image_shape=(32, 32, 3),
    num_classes=10,
  )
