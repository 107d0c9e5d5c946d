"""The benchmark: what it counts and writes, not how long anything takes."""

import subprocess

from absl import flags
import pandas as pd
import pytest

from benchmarks import round_times
from benchmarks import run
from benchmarks import startup
from benchmarks import workloads
from tff_fair import runtime

pytestmark = pytest.mark.usefixtures('runtime_as_before')

_COLUMNS = [
  'workload', 'implementation', 'reference', 'median_seconds', 'min_seconds',
  'max_seconds', 'ratio', 'rounds',
]  # fmt: skip


def _main(*arguments):
  flag_values = flags.FlagValues()
  run.define_flags(flag_values)
  run.main(flag_values(['benchmark', *arguments]), flag_values)


class _Sending:
  """Rounds that send 3, 6, 9, ... bytes, and receive 1 each time."""

  traffic = (100, 10)
  number = 0

  def __call__(self):
    self.number += 1
    sent, received = self.traffic
    self.traffic = sent + 3 * self.number, received + 1


def test_implementations_take_turns_and_their_bytes_are_counted():
  log = []
  rounds = {'a': lambda: log.append(sending.number), 'b': _Sending()}
  sending = rounds['b']
  found = round_times.time_rounds('workload', rounds, 3)
  assert log == [0, 1, 2]
  assert [time[1:] for time in found['a']] == [(None, None)] * 3
  assert [time[1:] for time in found['b']] == [(3, 1), (6, 1), (9, 1)]
  assert all(time.seconds > 0 for time in found['b'])


def _rounds(*seconds):
  return [round_times.Round(time) for time in seconds]


def test_summary_leaves_out_the_first_two_rounds():
  table = round_times.summarize(
    {
      'A': {
        'stock': _rounds(90, 80, 6, 2, 4),
        'device': _rounds(70, 60, 3, 1, 0.5),
      },
      'table': {'stock': _rounds(9, 9, 8), 'device': _rounds(9, 9, 16)},
    }
  )
  assert list(table) == _COLUMNS
  assert table.to_numpy().tolist() == [
    ['A', 'stock', 'stock', 4, 2, 6, 1, 5],
    ['A', 'device', 'stock', 1, 0.5, 3, 4, 5],
    ['table', 'stock', 'stock', 8, 8, 8, 1, 3],
    ['table', 'device', 'stock', 16, 16, 16, 0.5, 3],
  ]


def test_summary_has_the_megabytes_of_runtimes_that_count_them():
  sent = [9e9, 9e9, 2e6, 1e6, 4e6]
  table = round_times.summarize(
    {
      'A': {
        'cluster': [round_times.Round(1, int(n), 5000) for n in sent],
        'device': _rounds(1, 1, 1),
      }
    }
  )
  assert list(table) == [*_COLUMNS, 'sent_mb', 'received_mb']
  assert table[['sent_mb', 'received_mb']].iloc[0].tolist() == [2, 0.005]
  *_, cluster, device = round_times.to_text(table).splitlines()
  assert cluster.split()[-2:] == ['2.000', '0.005']
  assert device.split()[-2:] == ['-', '-']


def test_medians_of_starts_and_their_phases(monkeypatch):
  phases = startup._durations(10.0, {'import': 10.5, 'round': 12.0})
  assert phases == {'import': 0.5, 'round': 1.5, 'total': 2.0}
  starts = {'stock': iter([5.0, 9.0, 6.0]), 'device': iter([3.0, 1.0, 2.0])}
  monkeypatch.setattr(
    startup,
    '_time_start',
    lambda name, options: {'import': 0.5, 'total': next(starts[name])},
  )
  table = startup.time_starts(['stock', 'device'], {})
  assert list(table) == ['implementation', 'phase', 'seconds']
  assert table['seconds'].tolist() == [0.5, 6.0, 0.5, 2.0]
  shown = [line.split() for line in startup.to_text(table).splitlines()]
  assert shown == [
    ['stock', 'device'],
    ['import', '0.50', '0.50'],
    ['total', '6.00', '2.00'],
  ]


def test_writes_and_prints_the_tables(monkeypatch, tmp_path, capsys):
  build = lambda setup: {'small': lambda: None, 'large': lambda: None}  # noqa: E731
  for name in ('tiny', 'population'):
    monkeypatch.setattr(workloads, name, build)
  monkeypatch.setattr(
    startup, '_time_start', lambda *_: {'import': 1.0, 'total': 2.0}
  )
  _main(
    '--workloads=population,start,tiny',
    '--rounds=4',
    f'--output_dir={tmp_path}',
  )
  table = pd.read_csv(tmp_path / 'benchmark.csv')
  assert list(table) == _COLUMNS
  assert table['implementation'].tolist() == ['small', 'large'] * 2
  assert table['rounds'].tolist() == [4] * 4
  starts = pd.read_csv(tmp_path / 'start.csv')
  assert starts['implementation'].unique().tolist() == ['stock', 'device']
  printed = capsys.readouterr()
  assert 'rounds 3 to 4' in printed.out and 'total' in printed.out
  assert not printed.err  # No progress: this is not a terminal.
  assert 'tiny: the round is so small' in printed.out


# Flags | what the message says.
_REFUSED = """
--workloads=A,C | Each of --workloads must be one of A, B, .*, found 'C'
--against=device | Each of --against must be one of .*, found 'device'
--against= | Each of --against must be one of .*, found ''
--workloads=A,blazefl --against=flower | Each of --against for the workload A must be one of stock, native, cluster, found 'flower'
--workloads=blazefl --against=fedjax | .* blazefl must be one of stock, native, cluster, flower, found
--rounds=2 | --rounds must be at least 3, found 2
A | every argument must be a flag, found 'A'
--output_dir=/dev/null/run | --output_dir=/dev/null/run must be a directory
--workloads=start | A start of stock must end without error, found: no such
"""  # noqa: E501


def test_bad_input_is_one_sentence_before_anything_is_timed(
  tmp_path, monkeypatch
):
  def fail(*_, stderr, **__):
    stderr.write('x\nno such device\n')
    return subprocess.CompletedProcess([], 1)

  monkeypatch.setattr(subprocess, 'run', fail)
  for row in _REFUSED.strip().splitlines():
    line, message = row.split(' | ')
    with pytest.raises(SystemExit, match=f'^Error: {message}'):
      _main(f'--output_dir={tmp_path}', *line.split())
  with pytest.raises(SystemExit, match='^Error: --device must be .*gpu:99'):
    _main('--workloads=A', '--device=gpu:99', f'--output_dir={tmp_path}')


@pytest.mark.parametrize(
  'error', [runtime.WorkerError('No worker is left.'), ImportError('No ray.')]
)
def test_a_cluster_that_cannot_start_is_one_sentence(
  error, monkeypatch, tmp_path
):
  def create(kind, **options):
    assert (
      options
      == {
        'cluster': {'num_workers': 3, 'cpus_per_worker': 1},
        'device': {'device': 'cpu', 'client_threads': 2},
      }[kind]
    )
    raise error

  monkeypatch.setattr(runtime, 'create_execution_context', create)
  with pytest.raises(SystemExit, match=f'^Error: {error}$'):
    _main(
      *('--workloads=tiny', '--against=cluster', '--num_workers=3'),
      *('--device=cpu', '--client_threads=2', f'--output_dir={tmp_path}'),
    )
