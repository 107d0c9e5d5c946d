import numpy as np
import pytest

from tff_fair import models


def _shapes(model, input_shape):
  outputs = model(np.zeros((2, *input_shape), np.float32))
  assert list(outputs) == ['logits', 'embedding']
  return outputs['logits'].shape, outputs['embedding'].shape


@pytest.mark.parametrize(
  ('name', 'input_shape', 'num_classes', 'embedding', 'num_weights'),
  [
    # 784 * 128 + 128 and 128 * 10 + 10.
    ('mlp_fedaboost', (28, 28, 1), 10, 128, 101770),
    # 784 * 128 + 128, 128 * 64 + 64 and 64 * 10 + 10.
    ('mlp_cffl_mnist', (28, 28, 1), 10, 64, 109386),
    # 108 * 32 + 32 and 32 * 2 + 2.
    ('mlp_cffl_adult', (108,), 2, 32, 3554),
    # 3 * 3 * 32 + 32, 4 * 32 of the batch norm, 14 * 14 * 32 * 62 + 62.
    ('cnn_femnist', (28, 28, 1), 62, 6272, 389374),
    # 896 and 18496, 2 * (32 + 64) of the group norms, 4096 * 128 + 128 and
    # 128 * 10 + 10.
    ('cnn_cifar_gn', (32, 32, 3), 10, 128, 545290),
  ],
)
def test_shapes_and_sizes(
  name, input_shape, num_classes, embedding, num_weights
):
  model = getattr(models, name)(input_shape, num_classes)
  logits_shape, embedding_shape = _shapes(model, input_shape)
  assert logits_shape == (2, num_classes)
  assert embedding_shape == (2, embedding)
  assert model.count_params() == num_weights


@pytest.mark.parametrize('name', ['mlp_cffl_mnist', 'mlp_cffl_adult'])
@pytest.mark.parametrize('input_shape', [(5,), (4, 4, 3)])
def test_dense_models_take_inputs_of_any_shape(name, input_shape):
  model = getattr(models, name)(input_shape, 3)
  assert _shapes(model, input_shape)[0] == (2, 3)


@pytest.mark.parametrize('name', ['mlp_cffl_mnist', 'mlp_cffl_adult'])
def test_the_embedding_is_behind_its_activation(name):
  model = getattr(models, name)((5,), 3)
  x = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
  embedding = model(x)['embedding'].numpy()
  assert embedding.min() == 0
  kernel, bias = model.layers[-1].get_weights()
  np.testing.assert_allclose(
    model(x)['logits'], embedding @ kernel + bias, rtol=1e-4, atol=1e-5
  )


def test_defaults_are_the_papers():
  assert models.mlp_cffl_mnist().input_shape == (None, 28, 28, 1)
  outputs = models.mlp_cffl_adult((108,)).output_shape
  assert outputs['logits'] == (None, 2)
