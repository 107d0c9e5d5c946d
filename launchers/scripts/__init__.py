"""The papers' public scripts: a module for each repository and commit.

Each is named after the repository and the first eight digits of the commit, is
composed of the parts of `tff_fair`, and says in its docstring what was read
there, and what is not the same. `launchers/tables` has the runs.
"""
