"""scikit-learn's 1,797 handwritten digits, which need no download.

Inputs are float32 [1797, 8, 8, 1] in [0, 1], classes 0..9.
"""

import numpy as np

from tff_fair.tasks import options as options_lib
from tff_fair.tasks import pooled
from tff_fair.tasks import rules
from tff_fair.tasks import task

_NUM_CLASSES = 10
_MAX_PIXEL = 16


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task."""
  return pooled.build(
    DATA_SET.name, data=load(), num_classes=_NUM_CLASSES, options=options
  )


def load() -> task.Examples:
  """Returns all examples of the data set."""
  from sklearn import datasets

  digits = datasets.load_digits()
  x = (digits.images / _MAX_PIXEL).astype(np.float32)
  return task.Examples(x[..., np.newaxis], digits.target.astype(np.int32))


DATA_SET = rules.DataSet(
  name='digits',
  build=build,
  num_clients=20,
  dirichlet_alpha=0.5,
  model='mlp_fedaboost',
)
