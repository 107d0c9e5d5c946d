"""A Ray of two nodes on loopback, as two machines would be."""

from collections.abc import Iterator
import contextlib
import os
import tempfile

_LOOPBACK = '127.0.0.1'
_STORE_BYTES = 100 * 2**20


@contextlib.contextmanager
def start(num_cpus: int = 1) -> Iterator['ray.cluster_utils.Cluster']:  # noqa: F821
  """Starts two nodes; the program joins the first, at `cluster.address`."""
  from ray import cluster_utils
  from ray._common import utils

  # `Cluster` leaves the address there, also if its nodes are elsewhere, and Ray
  # makes the folder only for nodes in it.
  os.makedirs(utils.get_ray_temp_dir(), exist_ok=True)
  with tempfile.TemporaryDirectory(prefix='ray_', dir='/tmp') as folder:
    node = {
      'num_cpus': num_cpus,
      'node_ip_address': _LOOPBACK,
      'object_store_memory': _STORE_BYTES,
      'include_log_monitor': False,
    }
    cluster = cluster_utils.Cluster()
    try:
      cluster.add_node(
        **node,
        temp_dir=folder,
        no_monitor=True,
        include_dashboard=False,
        _system_config={'worker_niceness': 0, 'enable_worker_prestart': False},
      )
      # Another address, as the program joins a node that has its own.
      cluster.add_node(**{**node, 'node_ip_address': '127.0.0.2'})
      yield cluster
    finally:
      cluster.shutdown()
