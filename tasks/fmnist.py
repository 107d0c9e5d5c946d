"""Task 'fmnist': 70,000 pictures of clothes, Fashion-MNIST (Xiao et al., 2017).

Inputs are float32 [70000, 28, 28, 1] in [0, 1], classes 0..9. The defaults are
those of CoRe-Fed's experiments: 100 clients, Dirichlet with alpha 0.5.
"""

import tensorflow as tf

from tasks import images
from tasks import options as options_lib
from tasks import task


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task; see `tasks.images.build`.

  Args:
    options: The user's choices; the data folder may hold `fashion-mnist`, a
      folder of four files as Keras's own cache has it.
  """
  return images.build(
    'fmnist',
    options.with_defaults(
      partition='dirichlet',
      num_clients=100,
      dirichlet_alpha=0.5,
      model='mlp_corefed',
    ),
    file_name='fashion-mnist',
    keras_load_data=tf.keras.datasets.fashion_mnist.load_data,
    image_shape=(28, 28),
    num_classes=10,
  )
