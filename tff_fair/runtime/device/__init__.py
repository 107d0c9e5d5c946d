"""The in-process runtime: TFF computations on the installed TensorFlow.

`context` is what TFF calls. It converts arguments (`values`) and runs a
`program`: a computation that TFF's compiler has turned into a list of steps,
which a `plan` has put in order. Server steps run one by one (`intrinsics`,
`aggregation`); between two aggregations each client runs all of its steps in
one call (`client_stage`), several clients at once. The work is in TensorFlow
blocks, which become functions of this process (`graph_import`,
`graph_function`, `tracing`) on one device (`placement`).
"""

from tff_fair.runtime.device.context import create_device_context

__all__ = ['create_device_context']
