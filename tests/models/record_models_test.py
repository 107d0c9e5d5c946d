import functools
import re

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import models
from tff_fair.models import record_models

_NUM_CODES = 11
_UNITS = 3

_model_fn = functools.partial(
  record_models.gru_ehr,
  (1 + 8, 4),
  2,
  vocabulary_size=_NUM_CODES,
  num_sexes=3,
  num_postal_buckets=10,
  embedding_size=5,
  units=_UNITS,
)


def _records(*lengths, max_events=8, seed=0):
  """Random records; the numbers behind a record's last event are zeros."""
  rng = np.random.default_rng(seed)
  x = np.zeros((len(lengths), 1 + max_events, 4), np.float32)
  for record, length in zip(x, lengths, strict=True):
    record[0] = rng.integers(3), rng.integers(10), length, 0
    record[1 : 1 + length, 0] = rng.integers(2, _NUM_CODES, length)
    record[1 : 1 + length, 1:] = rng.normal(size=(length, 3))
  return x


def _outputs(model, x):
  outputs = model(x)
  assert list(outputs) == ['logits', 'embedding']
  return outputs['logits'].numpy(), outputs['embedding'].numpy()


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


def _gru(inputs, kernel, recurrent_kernel, biases):
  """The states of a GRU whose reset gate acts behind the product."""
  state, states = np.zeros(_UNITS), []
  for x in inputs:
    from_x = np.split(x @ kernel + biases[0], 3)
    from_state = np.split(state @ recurrent_kernel + biases[1], 3)
    update = _sigmoid(from_x[0] + from_state[0])
    reset = _sigmoid(from_x[1] + from_state[1])
    candidate = np.tanh(from_x[2] + reset * from_state[2])
    state = update * state + (1 - update) * candidate
    states.append(state)
  return np.array(states)


def _reference(weights, record):
  """The model in NumPy: logits and embedding of one record."""
  weights = [w.astype(np.float64) for w in weights]
  codes, *grus = weights[:13]
  energy_kernel, energy_bias, score, sexes, postal, kernel, bias = weights[13:]
  sex, bucket, length = record[0, :3].astype(int)
  events = record[1 : 1 + length]
  h = np.hstack([codes[events[:, 0].astype(int)], events[:, 1:]])
  for forward, backward in ((grus[:3], grus[3:6]), (grus[6:9], grus[9:])):
    h = np.hstack([_gru(h, *forward), _gru(h[::-1], *backward)[::-1]])
  scores = np.tanh(h @ energy_kernel + energy_bias) @ score
  attention = np.exp(scores) / np.exp(scores).sum()
  context = (attention * h).sum(axis=0)
  embedding = np.concatenate([context, sexes[sex], postal[bucket]])
  return embedding @ kernel + bias, embedding


def _random_weights(model):
  rng = np.random.default_rng(1)
  model.set_weights([rng.normal(size=w.shape) for w in model.get_weights()])
  return model.get_weights()


def test_equals_the_formulas_in_numpy():
  model = _model_fn()
  weights = _random_weights(model)
  x = _records(8, 1, 5)
  logits, embedding = _outputs(model, x)
  for i, record in enumerate(x):
    expected = _reference(weights, record)
    np.testing.assert_allclose(logits[i], expected[0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(embedding[i], expected[1], rtol=1e-4, atol=1e-4)


def test_default_sizes():
  [dropout] = [
    layer
    for layer in _model_fn().layers
    if isinstance(layer, tf.keras.layers.Dropout)
  ]
  assert dropout.rate == 0.3
  model = record_models.gru_ehr(
    (129, 4), vocabulary_size=300, num_sexes=3, num_postal_buckets=1000
  )
  assert model.input_shape == (None, 129, 4)
  assert model.output_shape['logits'] == (None, 2)
  # Twice 256, 8 and 16.
  assert model.output_shape['embedding'] == (None, 536)
  # Embeddings; two GRUs a layer, each 3 * 256 * (inputs + 256 + 2 biases) with
  # 67 and 512 inputs; attention; classifier.
  embeddings = 300 * 64 + 3 * 8 + 1000 * 16
  grus = 2 * 768 * (67 + 256 + 2) + 2 * 768 * (512 + 256 + 2)
  attention = 512 * 256 + 256 + 256
  assert model.count_params() == embeddings + grus + attention + 536 * 2 + 2


def test_logits_do_not_depend_on_how_far_a_record_is_padded():
  model = _model_fn()
  weights = _random_weights(model)
  wide = record_models.gru_ehr((1 + 30, 4), 2, **_model_fn.keywords)
  wide.set_weights(weights)
  x = _records(5, 8)
  padded = np.zeros((2, 31, 4), np.float32)
  padded[:, :9] = x
  expected = _outputs(model, x)
  for found, theirs in zip(_outputs(wide, padded), expected, strict=True):
    np.testing.assert_allclose(found, theirs, rtol=1e-4, atol=1e-5)
  # Alone in its batch a record is cut to its own length.
  for alone, theirs in zip(_outputs(model, x[:1]), expected, strict=True):
    np.testing.assert_allclose(alone, theirs[:1], rtol=1e-4, atol=1e-5)


def test_padding_is_ignored_and_the_order_of_events_matters():
  model = _model_fn()
  _random_weights(model)
  x = _records(5, 8, 0)
  logits = _outputs(model, x)[0]
  assert np.isfinite(logits).all()  # Also without any event.
  changed, backwards = x.copy(), x.copy()
  changed[0, 6:] = [7, 3, -2, 1]
  np.testing.assert_allclose(
    _outputs(model, changed)[0], logits, rtol=1e-5, atol=1e-6
  )
  backwards[0, 1:6] = x[0, 5:0:-1]
  assert np.abs(_outputs(model, backwards)[0] - logits)[0].max() > 1e-3


def test_refuses_other_inputs():
  for shape in ((9,), (9, 3), (1, 4), (2, 9, 4)):
    with pytest.raises(
      ValueError,
      match=f'^input_shape must be .*, found {re.escape(str(shape))}',
    ):
      record_models.gru_ehr(
        shape, vocabulary_size=5, num_sexes=3, num_postal_buckets=10
      )


def test_a_stateless_call_equals_the_stateful_one():
  stateless = models.StatelessModel(_model_fn)
  model = _model_fn()
  weights, x = stateless.initial_weights, _records(8, 2)
  weights.assign_weights_to(model)
  outputs, statistics = stateless(weights, x, training=False)
  assert not statistics
  np.testing.assert_allclose(
    outputs['logits'], _outputs(model, x)[0], atol=1e-6
  )
  assert stateless.embedding_size == 2 * _UNITS + 24
  # Dropout is a function of the seed.
  first, same, other = (
    stateless(weights, x, training=True, seed=seed)[0]['logits'].numpy()
    for seed in ([1, 2], [1, 2], [1, 3])
  )
  np.testing.assert_array_equal(first, same)
  assert np.any(first != other)
