"""Images of one's own: a folder for each client, with one for each class in it.

`--data_file` names the folder, whose files are CLIENT/CLASS/FILE. Inputs are
float32 [n, height, width, 1 or 3] of 0 to 1.
"""

from typing import TYPE_CHECKING

from tff_fair.tasks import options as options_lib
from tff_fair.tasks import own_data
from tff_fair.tasks import rules
from tff_fair.tasks import sources

if TYPE_CHECKING:
  from tff_fair.own_data import encoded


def _encode(options: options_lib.TaskOptions) -> 'encoded.Encoded':
  # Imports pandas and Pillow.
  from tff_fair.own_data import image_folder

  return image_folder.encode(
    options.data_file,
    size=image_folder.parse_size('--image_size', options.image_size),
    argument='--image_size',
  )


DATA_SET = own_data.data_set(
  'image_folder',
  _encode,
  endings=(sources.FOLDER,),
  options=('data_file', 'image_size'),
  required=('data_file',),
  partitions=(rules.OWN_PARTITION, *rules.POOL_PARTITIONS),
)
