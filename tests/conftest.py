"""Fixtures that all tests share."""

import gc
import os

import pytest

# Silences what TensorFlow says of CUDA on machines without a GPU.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
# TensorFlow takes this number at its first operation, which in some files comes
# before a runtime is set; with more threads, sums vary in their last bits.
os.environ.setdefault('TF_NUM_INTRAOP_THREADS', '1')


def pytest_collection_finish():
  """What was imported until now stays; nobody need look whether it does.

  TensorFlow and TFF are a million objects, which every full collection visits.
  """
  gc.collect()
  gc.freeze()


@pytest.fixture(scope='session')
def default_runtime():
  """TFF computations run in this process."""
  from tff_fair import runtime

  runtime.set_execution_context('device', device='cpu')
