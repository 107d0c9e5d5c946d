"""Fashion-MNIST (Xiao et al., 2017): 70,000 pictures of clothes.

Inputs are float32 [70000, 28, 28, 1] in [0, 1], classes 0..9. The file is a
folder of four, as in Keras's own cache. The defaults are those of CoRe-Fed's
experiments.
"""

from tasks import images

DATA_SET = images.data_set(
  'fmnist',
  file_name='fashion-mnist',
  keras_name='fashion_mnist',
  image_shape=(28, 28),
  num_classes=10,
  num_clients=100,
  dirichlet_alpha=0.5,
  model='mlp_corefed',
)
