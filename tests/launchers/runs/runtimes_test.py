"""From the flags of a run to its runtime."""

import pytest

from tff_fair import runtime
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import training


def _settings(*arguments):
  flag_values = train_flags.parse(list(arguments))
  return settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)


@pytest.fixture(name='chosen')
def _chosen(monkeypatch):
  """From flags to the runtime that they set, and its options."""
  calls = []

  def record(kind, **options):
    calls.append((kind, options))

  monkeypatch.setattr(runtime, 'set_execution_context', record)

  def choose(*arguments):
    training.set_runtime(_settings(*arguments))
    return calls[-1]

  return choose


def test_flags_reach_the_runtime(chosen):
  assert chosen('--runtime=native') == ('native', {})
  assert chosen('--device=gpu:0,gpu:1', '--client_threads=3') == (
    'device',
    {'device': 'gpu:0,gpu:1', 'client_threads': 3},
  )
  defaults = {
    'num_workers': 2,
    'cpus_per_worker': 1,
    'gpus_per_worker': 0,
    'address': None,
    'timeout': 60.0,
  }
  assert chosen('--runtime=cluster') == ('cluster', defaults)
  given = {
    'num_workers': 4,
    'cpus_per_worker': 3,
    'gpus_per_worker': 2,
    'address': 'a.example:6379',
    'timeout': 5.0,
  }
  assert chosen(
    '--runtime=cluster',
    '--num_workers=4',
    '--cpus_per_worker=3',
    '--gpus_per_worker=2',
    '--cluster_address=a.example:6379',
    '--worker_timeout=5',
  ) == ('cluster', given)


def test_what_a_runtime_refuses_is_said_with_the_flag(monkeypatch):
  settings = _settings('--runtime=cluster')
  for error, message in (
    (ValueError('address must be x.'), '--cluster_address must be x.'),
    (ValueError('num_workers must be x.'), '--num_workers must be x.'),
    (ValueError('The machine must be x.'), 'The machine must be x.'),
    (ImportError('Ray must be installed.'), 'Ray must be installed.'),
  ):

    def refuse(kind, error=error, **options):
      if kind == 'cluster':
        raise error

    monkeypatch.setattr(runtime, 'set_execution_context', refuse)
    with pytest.raises(training.RunError) as caught:
      training.set_runtime(settings)
    assert str(caught.value) == message
