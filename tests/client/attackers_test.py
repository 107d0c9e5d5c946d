import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client

ModelWeights = tff.learning.models.ModelWeights
_SEED = np.array([1, 2], np.int32)
_UPDATE = [np.float32([[1, -2], [0.5, 0]]), np.float32([4])]


def _examples(client_id):
  part = collections.OrderedDict(
    x=tf.zeros([3, 2]), y=tf.constant([0, 1, 3], tf.int32)
  )
  return collections.OrderedDict(
    key=tf.constant(client_id), train=part, holdout=part
  )


def _output(client_id, kind, strength=None):
  """Of a client whose update is fixed; attackers are 1 and 3."""

  def client_update(weights, row, examples, seed, learning_rate, shared):
    del weights, seed, learning_rate
    return client.ClientOutput(
      update=ModelWeights(list(map(tf.constant, _UPDATE)), [tf.ones([1])]),
      update_weight=(examples['train']['y'], examples['holdout']['y']),
      row=row + shared,
      metrics=collections.OrderedDict(),
      report=collections.OrderedDict(loss=2.0),
    )

  attackers = client.Attackers(client_ids=(1, 3), kind=kind, strength=strength)
  attacked = client.with_attackers(client_update, attackers, num_classes=4)
  return attacked(
    (), tf.constant(4), _examples(client_id), _SEED, 0.1, shared=1
  )


@pytest.mark.parametrize(
  ('kind', 'strength', 'factor'),
  [
    ('sign_flip', None, -1),
    ('sign_flip', 2.5, -2.5),
    ('scaled_update', None, 10),
    ('scaled_update', 0.5, 0.5),
    ('label_flip', None, 1),
  ],
)
def test_attacks_by_hand(kind, strength, factor):
  for client_id in range(4):
    output = _output(client_id, kind, strength)
    attacks = client_id in (1, 3)
    sent, statistics = output.update
    for found, own in zip(sent, _UPDATE, strict=True):
      np.testing.assert_array_equal(found, factor * own if attacks else own)
    np.testing.assert_array_equal(statistics[0], [1])
    # 3 - y.
    flips = attacks and kind == 'label_flip'
    for labels in output.update_weight:
      np.testing.assert_array_equal(labels, [3, 2, 0] if flips else [0, 1, 3])
    assert output.row == 5
    assert output.report == {'loss': 2.0, 'attacker': int(attacks)}


def test_noise():
  attackers = client.Attackers(
    client_ids=(0,), kind='gaussian_noise', strength=0.5
  )
  update = [np.ones([100, 100], np.float32), np.ones([100], np.float32)]
  kernel, bias = (t.numpy() for t in attackers.upload(update, _SEED))
  assert abs(kernel.mean()) < 0.02
  assert kernel.std() == pytest.approx(0.5, rel=0.03)
  # It is not clipped, as a free rider's is.
  assert (np.abs(kernel) > 0.5).mean() == pytest.approx(0.317, abs=0.02)
  assert not np.array_equal(kernel[0], bias)
  again, _ = attackers.upload(update, _SEED)
  np.testing.assert_array_equal(again, kernel)
  other, _ = attackers.upload(update, _SEED + 1)
  assert not np.array_equal(other, kernel)


def test_refusals():
  for arguments, message in (
    ({'client_ids': ()}, 'client_ids must name an attacker, found none'),
    ({'client_ids': (-1,)}, 'The id of an attacker must be'),
    ({'kind': 'zero'}, "kind must be one of .*, found 'zero'"),
    ({'strength': 0.0}, 'strength must be'),
    (
      {'kind': 'label_flip', 'strength': 1.0},
      "strength must be None with 'label_flip', which has none, found 1.0",
    ),
  ):
    with pytest.raises(ValueError, match=message):
      client.Attackers(**{'client_ids': (0,), 'kind': 'sign_flip', **arguments})
