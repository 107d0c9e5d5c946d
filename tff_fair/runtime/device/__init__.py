"""The in-process runtime: TFF computations on the installed TensorFlow.

A computation is compiled by TFF (`program`), its tree is walked here
(`program`, `intrinsics`), and each TensorFlow block runs as a function of this
process (`graph_import`, `graph_function`) on one device (`placement`), on
values that need no serialisation (`values`). `context` is what TFF calls.
"""

from tff_fair.runtime.device.context import create_device_context

__all__ = ['create_device_context']
