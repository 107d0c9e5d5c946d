"""The linear task with its features arranged as images of 2 x 2 pixels."""

import dataclasses

import tensorflow as tf

from tests.algorithms import linear_task

SHAPE = (2, 2, 1)


def model_fn():
  """The linear classifier of images."""
  x = tf.keras.Input(SHAPE)
  flat = tf.keras.layers.Flatten()(x)
  return tf.keras.Model(x, linear_task.model_fn()(flat))


def embedding_model_fn():
  """The same with the doubled pixels as its embedding."""
  x = tf.keras.Input(SHAPE)
  double = tf.keras.layers.Dense(
    linear_task.NUM_FEATURES, kernel_initializer=tf.initializers.Identity(2.0)
  )
  embedding = double(tf.keras.layers.Flatten()(x))
  logits = linear_task.model_fn()(embedding)
  return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})


def as_images(data):
  """A client whose inputs are images."""
  return dataclasses.replace(
    data,
    x=data.x.reshape(-1, *SHAPE),
    holdout_x=data.holdout_x.reshape(-1, *SHAPE),
  )
