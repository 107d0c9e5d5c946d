"""Task 'cifar100': 60,000 small photographs of a hundred kinds of things.

Inputs are float32 [60000, 32, 32, 3] in [0, 1], classes 0..99, the fine labels.
The defaults are those of FedQuad's experiments: 10 clients, Dirichlet with
alpha 0.5.
"""

import tensorflow as tf

from tasks import images
from tasks import options as options_lib
from tasks import task


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task; see `tasks.images.build`.

  Args:
    options: The user's choices; the data folder may hold `cifar100.npz`.
  """
  return images.build(
    'cifar100',
    options.with_defaults(
      partition='dirichlet',
      num_clients=10,
      dirichlet_alpha=0.5,
      model='cnn_fedquad',
    ),
    file_name='cifar100.npz',
    keras_load_data=tf.keras.datasets.cifar100.load_data,
    image_shape=(32, 32, 3),
    num_classes=100,
  )
