"""The data sets, one module each.

To add a data set, add a module here, with its facts as `DATA_SET`, a
`tasks.rules.DataSet`. `tasks.registry` finds it by its file name, which is the
name of the task. A module imports TensorFlow, TFF and pandas only in the
functions that read data, so that all facts can be read in a moment.
"""
