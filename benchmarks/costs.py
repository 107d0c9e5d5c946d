"""Measures a round's time and memory against its size, in one picture.

  python -m benchmarks.costs

A round of FedAvg on the runtime `device`: 10 clients of 100 examples of 64
numbers, in batches of 20, and a perceptron of 10,000 weights. One of the three
numbers varies at a time, by powers of ten: clients and examples up to 10,000,
weights from a thousand to a hundred million. Each point is the median of
--rounds rounds after the first two, in a process of its own. The memory is the
peak of that process, less what it had before its data were made.

Writes costs.csv, a row per point with the slopes from the point before, and
costs.png. Slope 1 means that ten times as much costs ten times as much. Takes
about five minutes, and 12 GB of memory.
"""

import pathlib

from absl import flags
import numpy as np
import pandas as pd

from benchmarks import own_process
from benchmarks import round_times
from tff_fair.launchers import cli
from tff_fair.launchers.options import settings

_BASE = {'clients': 10, 'examples': 100, 'weights': 10_000}
# What varies -> its values.
AXES = {
  'clients': [10, 100, 1000, 10_000],
  'examples': [10, 100, 1000, 10_000],
  'weights': [10**k for k in range(3, 9)],
}
_LABELS = {
  'clients': 'Clients a round',
  'examples': 'Examples a client',
  'weights': 'Weights of the model',
}
_COSTS = {'seconds': 'Seconds a round', 'memory_mib': 'Memory, MiB'}


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags."""
  flags.DEFINE_integer(
    'rounds',
    3,
    'Rounds that are counted, after two that are not.',
    lower_bound=1,
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'output_dir',
    'runs/costs',
    'Where the results go.',
    flag_values=flag_values,
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Measures all points."""
  cli.check_only_flags(argv)
  output_dir = pathlib.Path(flag_values['output_dir'].value)
  with cli.one_sentence_errors(settings.SettingsError):
    settings.make_writable(output_dir)
  with cli.one_sentence_errors(
    own_process.ProgramError,
    interrupted='interrupted before all points were measured.',
  ):
    table = with_slopes(_measure(flag_values['rounds'].value))
  table.to_csv(output_dir / 'costs.csv', index=False)
  print(table.to_string(index=False, float_format='{:.3g}'.format))
  draw(table, output_dir / 'costs.png')


def _measure(rounds) -> pd.DataFrame:
  """A row per point: what varies, its value, and the costs."""
  import tqdm

  points = [(axis, value) for axis, values in AXES.items() for value in values]
  rows, known = [], {}
  for axis, value in tqdm.tqdm(points, unit='point', disable=None):
    size = tuple({**_BASE, axis: value}.values())
    if size not in known:
      known[size] = own_process.run(
        'benchmarks.costs_once',
        [*size, rounds + round_times.NOT_COUNTED],
        f'{size}',
      )
    seconds, mib, weights = known[size]
    value = weights if axis == 'weights' else value
    rows.append((axis, value, seconds, mib))
  return pd.DataFrame(rows, columns=['axis', 'value', *_COSTS])


def with_slopes(table: pd.DataFrame) -> pd.DataFrame:
  """Adds the slopes of the costs, on logarithmic scales.

  Args:
    table: Columns `axis`, `value`, `seconds` and `memory_mib`.

  Returns:
    The table, with `seconds_slope` and `memory_mib_slope`: the logarithm of a
    cost's ratio to that of the row before, divided by the logarithm of the
    values' ratio; NaN in the first row of an axis.
  """
  steps = np.log(table[['value', *_COSTS]]).groupby(table['axis']).diff()
  slopes = steps[list(_COSTS)].div(steps['value'], axis=0)
  return table.join(slopes.add_suffix('_slope'))


def draw(table: pd.DataFrame, path: pathlib.Path) -> None:
  """Draws the costs, a panel for each that varies, and saves the picture."""
  from tff_fair.launchers.plots import plot_parts

  figure, panels = plot_parts.make_panels(len(_COSTS) * len(AXES), len(AXES))
  pairs = [(cost, axis) for cost in _COSTS for axis in AXES]
  for axes, (cost, axis) in zip(panels, pairs, strict=True):
    own = table[table['axis'] == axis]
    axes.loglog(own['value'], own[cost], marker='o')
    # Slope 1.
    axes.loglog(
      own['value'],
      own[cost].iloc[-1] * own['value'] / own['value'].iloc[-1],
      linestyle=':',
      color='gray',
    )
    axes.set_ylim(table[cost].min() / 2, table[cost].max() * 2)
    axes.set_xlabel(_LABELS[axis])
    axes.set_ylabel(_COSTS[cost])
    plot_parts.tidy(axes)
  plot_parts.save(figure, path)


if __name__ == '__main__':
  cli.run(main, define_flags)
