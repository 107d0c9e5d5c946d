import collections

import numpy as np
import pandas as pd
import pytest

from tff_fair.launchers.runs import round_metrics


def _metrics(ids, losses, sizes, aggregator=()):
  """Returns the metrics of a process for a call with these clients."""
  sizes = np.array(sizes, np.int32)
  clients = collections.OrderedDict(
    client_id=np.array(ids, np.int32), loss=np.array(losses, np.float32)
  )
  client_work = collections.OrderedDict(
    loss=np.float32(np.dot(losses, sizes) / max(sizes.sum(), 1)),
    num_clients=np.int32(len(ids)),
    num_examples=sizes.sum(dtype=np.int32),
    clients=clients,
  )
  finalizer = collections.OrderedDict(update_non_finite=np.int32(1))
  return collections.OrderedDict(
    distributor=(),
    client_work=client_work,
    aggregator=aggregator,
    finalizer=finalizer,
  )


def test_flatten_names_columns():
  aggregator = collections.OrderedDict(
    num_excluded=np.int32(2), mean=collections.OrderedDict(), vector=np.ones(3)
  )
  row, reports = round_metrics.flatten(
    _metrics([4, 1], [0.5, 1.5], [3, 1], aggregator)
  )
  assert row == {
    'train_loss': 0.75,
    'num_clients': 2,
    'num_examples': 4,
    'aggregator_num_excluded': 2,
    'finalizer_update_non_finite': 1,
  }
  assert reports.to_dict('list') == {'client_id': [4, 1], 'loss': [0.5, 1.5]}


def test_what_the_aggregator_says_of_clients_joins_by_id():
  clients = collections.OrderedDict(
    client_id=np.arange(5), reputation=np.arange(5) / 10
  )
  aggregator = collections.OrderedDict(clients=clients)
  metrics = _metrics([4, 1], [0.5, 1.5], [3, 1], aggregator)
  rejected = np.ones(2, np.int32)
  metrics['client_work']['clients']['rejected'] = rejected
  row, reports = round_metrics.flatten(metrics)
  assert 'aggregator_clients' not in row
  # Absent clients, of whom only the aggregator knows, have no loss.
  np.testing.assert_array_equal(
    reports[['client_id', 'loss', 'rejected', 'reputation']],
    [
      [0, np.nan, 0, 0],
      [1, 1.5, 1, 0.1],
      [2, np.nan, 0, 0.2],
      [3, np.nan, 0, 0.3],
      [4, 0.5, 1, 0.4],
    ],
  )
  assert (
    reports['client_id'].dtype.kind == reports['rejected'].dtype.kind == 'i'
  )


def test_an_id_that_occurs_twice_is_refused():
  clients = collections.OrderedDict(client_id=np.array([1, 1]))
  aggregator = collections.OrderedDict(clients=clients)
  with pytest.raises(pd.errors.MergeError):
    round_metrics.flatten(_metrics([4, 1], [0.5, 1.5], [3, 1], aggregator))


def test_one_call_stays_as_it_is():
  call = round_metrics.flatten(_metrics([4, 1], [0.5, 1.5], [3, 1]))
  assert round_metrics.merge([call]) is call


def test_calls_merge_to_sums_and_means_over_examples():
  calls = [
    round_metrics.flatten(_metrics([0], [0.5], [3])),
    round_metrics.flatten(_metrics([1], [0.0], [0])),
    round_metrics.flatten(_metrics([2], [1.5], [1])),
  ]
  row, reports = round_metrics.merge(calls)
  assert row == {
    'train_loss': 0.75,  # (3 * 0.5 + 1 * 1.5) / 4
    'num_clients': 3,
    'num_examples': 4,
    'finalizer_update_non_finite': 3,
  }
  assert reports['client_id'].tolist() == [0, 1, 2]
  assert reports['loss'].tolist() == [0.5, 0, 1.5]


def test_calls_without_examples_merge():
  call = round_metrics.flatten(_metrics([0], [0.0], [0]))
  assert round_metrics.merge([call, call]).row['train_loss'] == 0
