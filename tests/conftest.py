"""Fixtures that all tests share."""

import os

import pytest

# Silences what TensorFlow says of CUDA on machines without a GPU.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')


@pytest.fixture(scope='session')
def default_runtime():
  """TFF computations run in this process."""
  from tff_fair import runtime

  runtime.set_execution_context('device', device='cpu')
