"""Fixtures that all tests share."""

import gc
import os

import pytest

# Silences what TensorFlow says of CUDA on machines without a GPU.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
# TensorFlow takes this number at its first operation, which in some files comes
# before a runtime is set; with more threads, sums vary in their last bits.
os.environ.setdefault('TF_NUM_INTRAOP_THREADS', '1')


@pytest.fixture(scope='module', autouse=True)
def _what_lives_now_stays():
  """What was imported or built until now is not looked at again.

  TensorFlow, TFF and the processes of earlier modules are millions of objects,
  which every full collection visits, and each checkpoint asks for one.
  """
  gc.collect()
  gc.freeze()


@pytest.fixture(scope='session')
def default_runtime():
  """TFF computations run in this process."""
  from tff_fair import runtime

  runtime.set_execution_context('device', device='cpu')
