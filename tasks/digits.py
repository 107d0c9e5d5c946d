"""Task 'digits': scikit-learn's bundled 1,797 handwritten digits.

Nothing to download: the task to try things on. Inputs are float32
[1797, 8, 8, 1] in [0, 1], classes 0..9.
"""

import numpy as np
from sklearn import datasets

from tasks import options as options_lib
from tasks import pooled
from tasks import task

_NUM_CLASSES = 10
_MAX_PIXEL = 16


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task; by default 20 clients, 'dirichlet' with alpha 0.5.

  Args:
    options: The user's choices; `data_dir` has no effect.

  Returns:
    The task.

  Raises:
    ValueError: If the data cannot be divided as the options say.
  """
  return pooled.build(
    'digits',
    data=load(),
    num_classes=_NUM_CLASSES,
    options=options.with_defaults(
      partition='dirichlet',
      num_clients=20,
      dirichlet_alpha=0.5,
      model='mlp_fedaboost',
    ),
  )


def load() -> task.Examples:
  """Returns all examples of the data set."""
  digits = datasets.load_digits()
  x = (digits.images / _MAX_PIXEL).astype(np.float32)
  return task.Examples(x[..., np.newaxis], digits.target.astype(np.int32))
