"""MNIST: 70,000 handwritten digits.

Inputs are float32 [70000, 28, 28, 1] in [0, 1], classes 0..9. The defaults are
those of FeDABoost, section 5.
"""

from tasks import images

DATA_SET = images.data_set(
  'mnist',
  file_name='mnist.npz',
  keras_name='mnist',
  image_shape=(28, 28),
  num_classes=10,
  num_clients=264,
  dirichlet_alpha=0.2,
  model='mlp_fedaboost',
)
