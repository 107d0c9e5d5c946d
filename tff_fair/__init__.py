"""Fair federated learning on TensorFlow Federated.

Import the part you need, for example `from tff_fair import aggregators`:

* `algorithms`: the papers' methods as `tff.learning` processes;
* `aggregators`: their rules as factories for any TFF pipeline;
* `client`, `losses`, `models`: what happens on a client;
* `fairness`: fairness measures, in NumPy alone;
* `metrics`: per-client evaluation;
* `runtime`: where computations run;
* `tasks`: the papers' data sets, dealt to clients;
* `launchers`: the programs behind the command `tff-fair`.
"""

import sys as _sys

__version__ = '0.1.0'
"""Also the version of the distribution `tff-fair`."""

if not (3, 10) <= _sys.version_info < (3, 12):
  raise ImportError(
    'tff-fair must run on Python 3.10 or 3.11, as TensorFlow Federated 0.87,'
    f' found {".".join(map(str, _sys.version_info[:3]))}.'
  )
