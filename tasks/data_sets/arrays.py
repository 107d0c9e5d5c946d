"""Arrays of one's own: an npz file with `x`, `y` and `client`.

`--data_file` names it. `x` [n, ...] are numbers, or images [n, height, width]
or [n, height, width, channels]; `y` [n] and `client` [n] are whole numbers or
texts.
"""

from typing import TYPE_CHECKING

from tff_fair.tasks import options as options_lib
from tff_fair.tasks import own_data
from tff_fair.tasks import rules

if TYPE_CHECKING:
  from tff_fair.own_data import encoded


def _encode(options: options_lib.TaskOptions) -> 'encoded.Encoded':
  # Imports pandas.
  from tff_fair.own_data import arrays
  from tff_fair.tasks import array_file

  with_clients = options.partition == rules.OWN_PARTITION
  found = array_file.read(options.data_file, with_clients)
  return arrays.encode(found['x'], found['y'], found.get('client'))


DATA_SET = own_data.data_set(
  'arrays',
  _encode,
  endings=('.npz',),
  options=('data_file',),
  required=('data_file',),
  partitions=(rules.OWN_PARTITION, *rules.POOL_PARTITIONS),
)
