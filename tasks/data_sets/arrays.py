"""Arrays of one's own: an npz file with `x`, `y` and `client`.

`--data_file` names it. `x` [n, ...] are numbers, or images [n, height, width]
or [n, height, width, channels]; `y` [n] and `client` [n] are whole numbers or
texts.
"""

import functools
import os
from typing import TYPE_CHECKING

from tff_fair.tasks import options as options_lib
from tff_fair.tasks import rules
from tff_fair.tasks import sources
from tff_fair.tasks import task

if TYPE_CHECKING:
  from tff_fair.own_data import encoded


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task; clients are in the order of their names.

  Args:
    options: Options with the defaults filled in; `num_clients` takes the first
      clients.

  Raises:
    DataNotFoundError: If there is no such file.
    DataDamagedError: If the file does not hold the arrays.
    ValueError: If the arrays are not fit for classification, or do not fit the
      options.
  """
  # Takes a second to import.
  from tff_fair.tasks import own_data

  return own_data.build(DATA_SET, _encode(options), options)


def check(options: options_lib.TaskOptions) -> None:
  """Checks the file and the options; see `build`.

  Args:
    options: Options with the defaults filled in.
  """
  from tff_fair.tasks import own_data

  own_data.check(_encode(options), options)


def _encode(options: options_lib.TaskOptions) -> 'encoded.Encoded':
  path = sources.check_file(options.data_file, ('.npz',))
  with_clients = options.partition == rules.OWN_PARTITION
  found = os.stat(path)
  return _encode_once(path, with_clients, found.st_mtime_ns, found.st_size)


# A launcher checks the arrays before it imports TensorFlow, and then builds the
# task of them.
@functools.lru_cache(maxsize=1)
def _encode_once(
  path: str, with_clients: bool, *version: int
) -> 'encoded.Encoded':
  from tff_fair.own_data import arrays
  from tff_fair.tasks import array_file

  del version  # Only for the cache.
  found = array_file.read(path, with_clients)
  return arrays.encode(
    found['x'], found['y'], found.get('client'), client='client'
  )


DATA_SET = rules.DataSet(
  name='arrays',
  build=build,
  check_data=check,
  partition=rules.OWN_PARTITION,
  partitions=(rules.OWN_PARTITION, *rules.POOL_PARTITIONS),
  dirichlet_alpha=0.5,
  model='mlp_fedaboost',
  options=('data_file',),
  required=('data_file',),
)
