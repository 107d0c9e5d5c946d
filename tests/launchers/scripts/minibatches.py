"""What the references of scripts share: minibatches that never change."""

import dataclasses

from tests.algorithms import reference


def fixed(data, size):
  """A client's minibatches in the order of its data."""
  return [
    dataclasses.replace(data, x=data.x[i : i + size], y=data.y[i : i + size])
    for i in range(0, len(data.y), size)
  ]


def gradient(network, v, batch):
  """Of the mean cross-entropy of a minibatch, float64[d]."""
  return reference.gradient(lambda w: network.loss(w, batch), v)
