import asyncio
import copy

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checkpoints
from tff_fair import client

_IDS = (3, 1, 4, 5, 9, 2, 6)


def _client_data(client_id):
  examples = (np.full([2, 1], client_id, np.float32), np.zeros([2], np.int32))
  return client.build_client_data(client_id, examples, examples)


def _plain_data(client_id):
  return tf.data.Dataset.from_tensors(np.int32(client_id))


def _drawn(data):
  """The ids of the clients whose data these are."""
  return [int(d['client_id'].get_single_element()) for d in data]


@pytest.fixture(name='source')
def _source():
  return client.ClientDataSource(_client_data, _IDS, seed=5)


def test_rounds_have_the_clients_of_the_sampling_function_of_tff(source):
  sample = tff.simulation.build_uniform_sampling_fn(_IDS, random_seed=5)
  iterator = source.iterator()
  for number in (1, 2, 3):
    expected = sample(number, 4)
    assert _drawn(iterator.select(4)) == expected
    assert _drawn(source.round_data(number, 4)) == expected
  assert _drawn(source.round_data(1)) == list(_IDS)


def test_the_type_is_that_of_the_data_at_the_clients(source):
  expected = tff.FederatedType(
    client.client_data_type(tf.TensorSpec([None, 1], tf.float32), 10),
    tff.CLIENTS,
  )
  # The contract leaves open how many examples an element has; the data do not.
  assert expected.is_assignable_from(source.federated_type)
  assert source.iterator().federated_type == source.federated_type
  plain = client.ClientDataSource(_plain_data, _IDS)
  assert str(plain.federated_type) == '{int32*}@CLIENTS'


def test_a_copy_of_an_iterator_goes_on_by_itself(source):
  iterator = source.iterator()
  iterator.select(3)
  kept = copy.deepcopy(iterator)
  second = _drawn(iterator.select(3))
  iterator.select(3)
  assert _drawn(kept.select(3)) == second


def test_a_saved_iterator_goes_on_where_it_was(source, tmp_path):
  iterator = source.iterator()
  for _ in range(12):
    iterator.select(3)
  managed = checkpoints.SafetensorsStateManager(tmp_path)
  again = client.ClientDataSource(_client_data, _IDS, seed=5)

  async def save_and_load():
    await managed.save({'iterator': iterator}, 1)
    return await managed.load(1, {'iterator': again.iterator()})

  restored = asyncio.run(save_and_load())['iterator']
  assert _drawn(restored.select(4)) == _drawn(source.round_data(13, 4))


def test_rounds_by_reference_name_the_same_clients(source):
  loaded = []

  def load(client_id):
    loaded.append(client_id)
    return _client_data(client_id)

  named = client.ClientDataSource(
    load, _IDS, seed=5, by_reference=True, num_examples_fn=lambda i: 10 * i
  )
  assert named.federated_type == source.federated_type
  assert loaded.pop() == _IDS[0]  # For the type.
  references = named.iterator().select(4)
  assert not loaded
  expected = _drawn(source.round_data(1, 4))
  assert [r.client_id for r in references] == expected
  assert {r.load for r in references} == {load}
  assert [r.num_examples for r in references] == [10 * i for i in expected]
  assert _drawn(r() for r in references) == expected
  alike = client.ClientDataSource(load, _IDS, by_reference=True)
  assert {r.num_examples for r in alike.round_data(1)} == {1}


def test_arguments_just_outside_their_range(source):
  for k in (0, 8):
    with pytest.raises(ValueError, match=r'^k must be in 1\.\.7, found'):
      source.iterator().select(k)
  for name, options in (
    ('client_ids', {'client_ids': []}),
    ('client_data_fn', {'client_data_fn': 3}),
    ('seed', {'seed': -1}),
    ('seed', {'seed': 2**32}),
    ('seed', {'seed': 0.5}),
    ('by_reference', {'by_reference': 3}),
    ('num_examples_fn', {'num_examples_fn': len}),
    ('num_examples_fn', {'num_examples_fn': 3, 'by_reference': True}),
  ):
    options = {'client_data_fn': _client_data, 'client_ids': _IDS, **options}
    with pytest.raises((TypeError, ValueError), match=f'^{name} must '):
      client.ClientDataSource(**options)
