"""Task 'cifar10': 60,000 small photographs, train and test file pooled.

Inputs are float32 [60000, 32, 32, 3] in [0, 1], classes 0..9. The defaults are
those of FeDABoost, section 5: 196 clients, Dirichlet with alpha 0.4.
"""

import functools
import os

import tensorflow as tf

from tasks import images
from tasks import options as options_lib
from tasks import pooled
from tasks import task
from tff_fair import models

_NUM_CLASSES = 10


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task; by default 196 clients, 'dirichlet' with alpha 0.4.

  Args:
    options: The user's choices; the data folder may hold `cifar10.npz`.

  Returns:
    The task.

  Raises:
    DataNotFoundError: If the file is nowhere and cannot be downloaded.
    DataDamagedError: If the file does not hold what it should.
    ValueError: If the data cannot be divided as the options say.
  """
  # Before the data are read, so that a wrong choice is refused at once.
  options = options.with_defaults(
    partition='dirichlet', num_clients=196, dirichlet_alpha=0.4
  )
  data = load(options.data_dir)
  return pooled.build(
    'cifar10',
    data=data,
    num_classes=_NUM_CLASSES,
    model_fn=functools.partial(
      models.cnn_cifar_gn, data.x.shape[1:], _NUM_CLASSES
    ),
    options=options,
  )


def load(data_dir: str | os.PathLike | None = None) -> task.Examples:
  """Returns all examples, those of the train file first.

  Args:
    data_dir: The data folder; None for the environment variable
      TFF_FAIR_DATA_DIR.

  Raises:
    DataNotFoundError: If the file is nowhere and cannot be downloaded.
    DataDamagedError: If the file does not hold what it should.
  """
  return images.load(
    'cifar10.npz',
    tf.keras.datasets.cifar10.load_data,
    data_dir=data_dir,
    image_shape=(32, 32, 3),
    num_classes=_NUM_CLASSES,
  )
