"""Data of one's own as arrays: tables of pandas, and arrays of NumPy.

Pure pandas and NumPy: importing it does not import TensorFlow. The users'
functions are `tff_fair.client.from_dataframe` and `from_arrays`, and the tasks
`table` and `arrays`.
"""
