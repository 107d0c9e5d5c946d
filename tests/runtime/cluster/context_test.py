"""Clients run on a worker, from end to end; and what is refused."""

import pytest

from tests import refusals
from tests.runtime.cluster import rounds
from tff_fair import runtime
from tff_fair.runtime.cluster import ray_session


def test_arguments():
  refusals.check(
    runtime.create_execution_context,
    [
      ({'num_workers': 0}, ValueError, 'num_workers must be at least 1'),
      ({'num_workers': 1.5}, TypeError, 'num_workers must be an integer'),
      ({'cpus_per_worker': 0}, ValueError, 'cpus_per_worker must be at least'),
      ({'gpus_per_worker': -1}, ValueError, 'gpus_per_worker must be at least'),
      ({'gpus_per_worker': 1.5}, ValueError, 'whole number, .* found 1.5'),
      ({'timeout': 0}, ValueError, 'timeout must be positive, found 0'),
      ({'timeout': None}, TypeError, 'timeout must be a real number'),
      ({'address': 'here'}, ValueError, "host:port, .* found 'here'"),
    ],
    kind='cluster',
  )


@pytest.mark.full
def test_a_worker_returns_the_bits_of_device():
  device = runtime.create_execution_context('device', client_threads=1)
  try:
    cluster = runtime.create_execution_context('cluster', num_workers=1)
    clients = [rounds.data_set(i) for i in range(11)]
    for _ in range(2):
      sent = cluster.bytes_sent
      rounds.assert_same_bits(
        rounds.invoke(cluster, clients), rounds.invoke(device, clients)
      )
    # The second time, the workers have the clients' data.
    assert cluster.bytes_sent - sent < 300 < sent
  finally:
    ray_session.disconnect()
