"""The Keras client model of patient records: sequences of events.

FedAKD, appendix H: a bidirectional GRU with attention over the events of a
record, concatenated with embeddings of its static features. A record is one
float32 array `[1 + num_events, 4]`: row 0 is (sex id, postal bucket, number of
events n, 0), rows 1..n are (code id, age, value, 1 if the value is missing) in
order of time, and the other rows are padding. Ids are small integers, so
float32 represents them exactly.
"""

import collections
from collections.abc import Sequence

import tensorflow as tf

_layers = tf.keras.layers

_SEX_EMBEDDING_SIZE = 8
_POSTAL_EMBEDDING_SIZE = 16


def gru_ehr(
  input_shape: Sequence[int],
  num_classes: int = 2,
  *,
  vocabulary_size: int,
  num_sexes: int,
  num_postal_buckets: int,
  embedding_size: int = 64,
  units: int = 256,
  dropout_rate: float = 0.3,
) -> tf.keras.Model:
  """FedAKD's model of health records: two bidirectional GRUs and attention.

  An event is the embedding of its code, concatenated with its three numbers.
  With the outputs `h_t` (2 * units) of the second bidirectional GRU at event t:

      e_t = v' tanh(W h_t + b),  a = softmax(e_1..e_n),  c = sum_t a_t h_t

  The embedding of the model is c, concatenated with the embeddings of sex (8)
  and postal bucket (16); a linear classifier follows. The paper specifies the
  GRUs with their dropout and the attention. The sizes of the embeddings, and
  dropout only between the two GRUs, are our choice. A record's outputs do not
  depend on its padding; a batch is cut to its longest record before the GRUs.

  Args:
    input_shape: Shape of one record, `(1 + num_events, 4)`.
    num_classes: Number of logits.
    vocabulary_size: Number of code ids; id 0 is padding.
    num_sexes: Number of sex ids.
    num_postal_buckets: Number of postal buckets.
    embedding_size: Size of a code's embedding.
    units: Units of a GRU in each direction, and size of `W h_t`.
    dropout_rate: Dropout rate of the first GRUs' outputs.

  Returns:
    A Keras model with an embedding of 2 * units + 24 dimensions.

  Raises:
    ValueError: If `input_shape` is not the shape of a record.
  """
  shape = tuple(input_shape)
  if len(shape) != 2 or shape[0] < 2 or shape[1] != 4:
    raise ValueError(
      'input_shape must be (1 + num_events, 4) with at least one event, found '
      f'{shape}.'
    )
  x = tf.keras.Input(shape)
  sexes, postal_buckets, codes, numbers, mask = _unpack(x)
  embedded = _layers.Embedding(vocabulary_size, embedding_size)(codes)
  h = _layers.Concatenate()([embedded, numbers])
  h = _bidirectional_gru(units)(h, mask=mask)
  h = _layers.Dropout(dropout_rate)(h)
  h = _bidirectional_gru(units)(h, mask=mask)
  embedding = _layers.Concatenate()(
    [
      _attend(h, mask, units),
      _layers.Embedding(num_sexes, _SEX_EMBEDDING_SIZE)(sexes),
      _layers.Embedding(num_postal_buckets, _POSTAL_EMBEDDING_SIZE)(
        postal_buckets
      ),
    ]
  )
  logits = _layers.Dense(num_classes)(embedding)
  return tf.keras.Model(
    x, collections.OrderedDict(logits=logits, embedding=embedding)
  )


def _unpack(x):
  """Sexes, postal buckets, and codes, numbers and mask of the events.

  Operations of TensorFlow, not a layer of our own: a saved model can be loaded
  without this package.
  """
  # Steps that are padding in every record would only cost time.
  static, events = x[:, 0], x[:, 1:]
  lengths = tf.cast(static[:, 2], tf.int32)
  events = events[:, : tf.maximum(tf.reduce_max(lengths), 1)]
  return (
    tf.cast(static[:, 0], tf.int32),
    tf.cast(static[:, 1], tf.int32),
    tf.cast(events[:, :, 0], tf.int32),
    events[:, :, 1:],
    tf.sequence_mask(lengths, tf.shape(events)[1]),
  )


def _bidirectional_gru(units) -> tf.keras.layers.Layer:
  # For Keras's GRU layer, the graph optimiser chooses between two
  # implementations, one of them cuDNN's; a cell in a loop has only one.
  cell = _layers.GRUCell(units)
  return _layers.Bidirectional(_layers.RNN(cell, return_sequences=True))


def _attend(h, mask, units):
  """Returns the attention-weighted mean of the steps, `[?, 2 * units]`."""
  energy = _layers.Dense(units, activation='tanh')(h)
  score = _layers.Dense(1, use_bias=False)(energy)
  attention = _layers.Softmax()(_layers.Reshape([-1])(score), mask=mask)
  return _layers.Dot(axes=1)([attention, h])
