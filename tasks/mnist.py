"""Task 'mnist': 70,000 handwritten digits.

Inputs are float32 [70000, 28, 28, 1] in [0, 1], classes 0..9. The defaults are
those of FeDABoost, section 5: 264 clients, Dirichlet with alpha 0.2.
"""

import tensorflow as tf

from tasks import images
from tasks import options as options_lib
from tasks import task


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task; see `tasks.images.build`.

  Args:
    options: The user's choices; the data folder may hold `mnist.npz`.
  """
  return images.build(
    'mnist',
    options.with_defaults(
      partition='dirichlet',
      num_clients=264,
      dirichlet_alpha=0.2,
      model='mlp_fedaboost',
    ),
    file_name='mnist.npz',
    keras_load_data=tf.keras.datasets.mnist.load_data,
    image_shape=(28, 28),
    num_classes=10,
  )
