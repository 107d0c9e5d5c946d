"""Hypothesis as these tests use it: repeatable, and without files.

`HYPOTHESIS_PROFILE=thorough` searches with twenty times as many examples, other
ones at each run.
"""

import os

import hypothesis

_SETTINGS = dict(
  database=None,
  deadline=None,
  suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
  'repeatable', max_examples=12, derandomize=True, **_SETTINGS
)
hypothesis.settings.register_profile(
  'thorough', max_examples=240, print_blob=True, **_SETTINGS
)
hypothesis.settings.load_profile(
  os.environ.get('HYPOTHESIS_PROFILE', 'repeatable')
)
