"""A module for each data set, named like its task; `DATA_SET` are its facts.

`tasks.registry` finds the modules by their file names. They import TensorFlow,
TFF and pandas only where data are read, so that the facts are cheap to read.
"""
