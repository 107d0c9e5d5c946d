"""The two tiers of the tests, and fixtures that all tests share.

`pytest` runs the fast tier. `pytest --full` runs everything. A test, or a whole
file, that belongs to the full tier alone carries the mark `full`. A file that
is named on the command line runs in either tier.
"""

import gc
import os
import pathlib
import re
import sys

import pytest

# Hides TensorFlow's messages about CUDA on machines without a GPU.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
# As the launchers do, which some tests start beside their own process.
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
# TensorFlow reads this number at its first operation, which in some files runs
# before a runtime is set. With more threads, the last bits of sums vary.
os.environ.setdefault('TF_NUM_INTRAOP_THREADS', '1')
# Containers often set it. Without bytecode, each of the many processes that the
# tests start takes nine seconds longer to import TFF.
sys.dont_write_bytecode = False
os.environ.pop('PYTHONDONTWRITEBYTECODE', None)

_FULL_FILE = re.compile(r'^pytestmark = \[?pytest\.mark\.full\b', re.MULTILINE)


def pytest_addoption(parser):
  parser.addoption(
    '--full',
    action='store_true',
    help='Run all tests, also those that take long (as CI does).',
  )


def pytest_ignore_collect(collection_path, config):
  """Skips files of the full tier unread: importing them takes seconds.

  pytest does not ask about files that are named on the command line.
  """
  if config.option.full or not collection_path.name.endswith('_test.py'):
    return None
  return bool(_FULL_FILE.search(collection_path.read_text())) or None


def pytest_collection_modifyitems(config, items):
  """Leaves out the tests of the full tier, except in files that are named."""
  if config.option.full:
    return
  named = {
    pathlib.Path(argument.partition('::')[0]).resolve()
    for argument in config.args
  }
  left_out = [
    item
    for item in items
    if item.get_closest_marker('full') and item.path not in named
  ]
  config.hook.pytest_deselected(items=left_out)
  items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope='module', autouse=True)
def _freeze_garbage_collector():
  """Keeps what exists now out of later garbage collections.

  TensorFlow, TFF and the processes of earlier modules are millions of objects.
  A full collection visits each of them, and every checkpoint asks for one.
  """
  gc.collect()
  gc.freeze()


@pytest.fixture(scope='module', autouse=True)
def _seed():
  """Gives every file the same random weights and draws in every run.

  Without it, a model's first weights are new each time, and a comparison that
  is rounded differently now and then fails now and then. Files that do not
  import TensorFlow draw nothing.
  """
  if 'tensorflow' in sys.modules:
    sys.modules['tensorflow'].keras.utils.set_random_seed(0)


@pytest.fixture(scope='session')
def default_runtime():
  """TFF computations run in this process."""
  from tff_fair import runtime

  runtime.set_execution_context('device', device='cpu')


@pytest.fixture
def plugins_as_before():
  """For tests that load plug-ins; later tests find ours alone."""
  from tff_fair import plugins
  from tff_fair.launchers.options import builders
  from tff_fair.launchers.options import methods
  from tff_fair.launchers.options import train_flags
  from tff_fair.tasks import model_builders
  from tff_fair.tasks import registry
  from tff_fair.tasks import rules

  registries = (
    *(plugins._LOADED, methods.METHODS, builders._REGISTERED, rules.MODELS),
    *(train_flags._FLAGS, train_flags._VARIANTS, model_builders._REGISTERED),
    *(registry._DATA_SETS, registry._PARTITIONS),
  )
  before = [dict(found) for found in registries]
  modules, path = {*sys.modules}, [*sys.path]
  yield
  for found, content in zip(registries, before, strict=True):
    found.clear()
    found.update(content)
  sys.path[:] = path
  for name in {*sys.modules} - modules:
    # Others' modules keep their state, and must not be imported twice.
    if name.startswith('plugin_'):
      del sys.modules[name]


@pytest.fixture
def runtime_as_before():
  """For tests that set a runtime; later tests expect the default one."""
  yield
  from tff_fair import runtime

  runtime.set_execution_context('device', device='cpu')
