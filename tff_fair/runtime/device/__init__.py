"""The in-process runtime: TFF computations on the installed TensorFlow.

TFF calls `context`. It converts arguments (`values`) and runs a `program`: a
computation that TFF's compiler has turned into a list of steps, in the order of
a `plan`. Server steps run one by one (`intrinsics`, `aggregation`). Between two
aggregations each client runs all its steps in one call (`client_stage`), and
clients run in parallel. The arithmetic is in TensorFlow blocks, which become
functions of this process (`graph_import`, `graph_function`, `tracing`) on one
device (`placement`).
"""

from tff_fair.runtime.device.context import create_device_context

__all__ = ['create_device_context']
