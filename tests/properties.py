"""Hypothesis outside tests/fuzz: the same examples in every run."""

import hypothesis

SETTINGS = hypothesis.settings(
  max_examples=150, deadline=None, database=None, derandomize=True
)
