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

__version__ = '0.1.0'
"""Also the version of the distribution `tff-fair`."""
