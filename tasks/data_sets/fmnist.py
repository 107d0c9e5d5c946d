"""Fashion-MNIST (Xiao et al., 2017): 70,000 pictures of clothes.

Inputs are float32 [70000, 28, 28, 1] in [0, 1], classes 0..9. The file is a
folder of four, as in Keras's own cache. The defaults are those of CoRe-Fed's
experiments.
"""

import pathlib

from tff_fair.tasks import idx
from tff_fair.tasks import images
from tff_fair.tasks import sources

_FOLDER = 'fashion-mnist'
_ADDRESS = 'https://storage.googleapis.com/tensorflow/tf-keras-datasets/'
_SHA256 = {
  'train-images-idx3-ubyte.gz': (
    '3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84'
  ),
  'train-labels-idx1-ubyte.gz': (
    'a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845'
  ),
  't10k-images-idx3-ubyte.gz': (
    '346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073'
  ),
  't10k-labels-idx1-ubyte.gz': (
    '67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5'
  ),
}


def _download():
  folder = f'{sources.KERAS_CACHE}/{_FOLDER}'
  for name, sha256 in _SHA256.items():
    file = sources.Download(_ADDRESS + name, sha256)
    sources.download(file, f'{folder}/{name}')
  return idx.read_folder(pathlib.Path(folder).expanduser())


DATA_SET = images.data_set(
  'fmnist',
  file_name=_FOLDER,
  download=_download,
  image_shape=(28, 28),
  num_classes=10,
  num_clients=100,
  dirichlet_alpha=0.5,
  model='mlp_corefed',
)
