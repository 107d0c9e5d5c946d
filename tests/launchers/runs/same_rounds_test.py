"""Runs that differ in their seeds alone share compiled rounds."""

import pytest
import tensorflow_federated as tff

from tff_fair.launchers.options import builders
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import training

pytestmark = pytest.mark.usefixtures('runtime_as_before')

# Their rounds hold data of the clients or of the server.
_OF_THE_DATA = {
  'cffl',
  'cffl_fedakd_script',
  'cffl_script',
  'fed_ave',
  'fed_ave_fedakd_script',
  'fed_rdn',
  'fed_sac',
  'fed_sac_fedakd_script',
  'round_robin_fed_avg',
}
_SHARING = sorted({*methods.METHODS} - _OF_THE_DATA)
# Those that share, and whose clients or server remember something, or draw; one
# of each kind.
_REMEMBERING = (
  'cgsv',
  'corefed',
  'ditto',
  'fed_dc',
  'fedakd',
  'scaffold',
  'standalone',
)
_FILES = ('metrics.csv', 'clients.csv', 'client_scores.csv', 'reports.csv')


def _settings(method, seed, *flags):
  arguments = [
    f'--algorithm={method}',
    '--task=digits',
    '--model=mlp_cffl_mnist',
    '--num_clients=3',
    '--data_fraction=0.2',
    '--rounds=2',
    '--local_epochs=1',
    '--export=none',
    '--device=cpu',
    *(f'--{name}_seed={seed}' for name in ('model', 'client', 'data')),
    *flags,
  ]
  if 'local_epochs' in methods.METHODS[method].ignores:
    arguments.remove('--local_epochs=1')
  flag_values = train_flags.parse(arguments)
  return settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)


def _run(folder, method, seed, like=None, flags=()):
  """A run after its last round, and the content of its files."""
  folder.mkdir()
  settings = _settings(method, seed, *flags)
  text = settings_lib.to_text(settings, None)
  run = training.Run(settings, folder, text, like=like)
  run.train(lambda row: None)
  run.finish()
  paths = [path for name in _FILES if (path := folder / name).exists()]
  assert len(paths) >= 3
  return run, [path.read_bytes() for path in paths]


def test_which_methods_share_their_rounds(monkeypatch):
  found = {
    name
    for name in methods.METHODS
    if building.same_for_all_seeds({'algorithm': name})
  }
  assert found == set(_SHARING)
  # What a plug-in does with its seed is not known.
  monkeypatch.setitem(builders._REGISTERED, 'fed_avg', print)
  assert not building.same_for_all_seeds({'algorithm': 'fed_avg'})


@pytest.mark.full
@pytest.mark.parametrize('method', ['fed_avg', *_REMEMBERING])
def test_another_seed_by_the_same_rounds(method, tmp_path):
  _, alone = _run(tmp_path / 'alone', method, 3)
  first, others = _run(tmp_path / 'first', method, 0)
  second, found = _run(tmp_path / 'second', method, 3, like=first)
  assert second._next is first._next
  assert found == alone
  assert found != others


@pytest.mark.full
@pytest.mark.parametrize('method', ['cffl'])
def test_rounds_that_hold_data_are_not_shared(method, tmp_path):
  _, alone = _run(tmp_path / 'alone', method, 3)
  first, _ = _run(tmp_path / 'first', method, 0)
  second, found = _run(tmp_path / 'second', method, 3, like=first)
  assert second._next is not first._next
  assert found == alone


def test_an_equal_runtime_is_kept_with_what_it_has_compiled():
  contexts = tff.framework.get_context_stack()

  def current(**changes):
    settings = {**_settings('fed_avg', 0), **changes}
    training.set_runtime(settings)
    return contexts.current

  first = current()
  assert current() is first
  # Seeds are none of its business.
  assert current(client_seed=5) is first
  other = current(client_threads=1)
  assert other is not first
  assert current(client_threads=1) is other
  assert current() is not other
  native = current(runtime='native')
  assert current(runtime='native') is native
  # Somebody else has set another one meanwhile.
  tff.backends.native.set_sync_local_cpp_execution_context()
  foreign = contexts.current
  assert current(runtime='native') is not foreign


@pytest.mark.full
def test_runs_with_other_numbers_of_clients_share_nothing(tmp_path):
  flags = (
    '--num_clients=9',
    '--small_clients=leave_out',
    '--min_samples=40',
    '--rounds=1',
  )
  first, _ = _run(tmp_path / 'first', 'ditto', 0, flags=flags)
  counts = {0: first.num_clients}
  for seed in range(1, 9):
    settings = _settings('ditto', seed, *flags)
    counts[seed] = training.build_task(settings).num_clients
  other = next(s for s, n in counts.items() if n != counts[0])
  second, _ = _run(tmp_path / 'second', 'ditto', other, first, flags)
  assert second.num_clients == counts[other]
  assert second._next is not first._next
