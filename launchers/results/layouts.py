"""The tables of docs/results.md: what each shows, and how it is laid out.

A table has three dimensions, settings, methods and metrics. One makes its rows,
one its columns, and there is a grid for each entry of the third. Methods and
settings appear when a result of theirs is recorded.
"""

from collections.abc import Mapping
import dataclasses
from typing import Literal

from tff_fair.launchers.tables import definitions

Dimension = Literal['setting', 'method', 'metric']
DIMENSIONS: tuple[Dimension, ...] = ('setting', 'method', 'metric')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
  """One table of the page.

  Attributes:
    table: The table in `definitions.TABLES`.
    cells: Name -> title, of the cells that it shows.
    rows: What its rows are.
    columns: What its columns are.
    digits: Metric -> digits after the point, in the paper's unit, if not those
      of `table_metrics`.
  """

  table: str
  cells: Mapping[str, str]
  rows: Dimension = 'method'
  columns: Dimension = 'setting'
  digits: Mapping[str, int] = dataclasses.field(default_factory=dict)

  @property
  def grids(self) -> Dimension:
    """The dimension that gets one grid per entry."""
    return next(
      name for name in DIMENSIONS if name not in (self.rows, self.columns)
    )


_CFFL_SIZES = {
  f'{data}_p{number}': f'{title} P{number}'
  for data, title in (('mnist', 'MNIST'), ('adult', 'Adult'))
  for number in (5, 10, 20)
}
_WHOLE_PER_CENT = {'above_standalone': 0}
_TENTHS = dict.fromkeys(
  ('cf', 'client_accuracy_max', 'client_accuracy_mean', 'global_accuracy'), 1
)
_FEDQUAD_SETTINGS = {
  'iid_c10': 'IID',
  'a03_c10': 'Dirichlet(0.3)',
  'a05_c10': 'Dirichlet(0.5)',
  'a03_c10_capped': 'Dirichlet(0.3), capped',
  'a05_c10_capped': 'Dirichlet(0.5), capped',
  'iid_c10_momentum_09': 'IID, momentum .9',
  'a03_c10_momentum_09': 'Dirichlet(0.3), momentum .9',
  'a05_c10_momentum_09': 'Dirichlet(0.5), momentum .9',
  'centralised': 'one client',
}
_SHIFTS = {
  'pow': 'POW',
  'bcs': 'BCS',
  'ics2': 'ICS 2',
  'ics5': 'ICS 5',
  'ics10': 'ICS 10',
}
# Clients draw from one pool, as Algorithm 2 prints it: what tests a client may
# train another.
_SHARED_DRAWS = {
  f'{name}_shared': f'{_SHIFTS[name]}, shared draws' for name in ('bcs', 'ics5')
}
_ONE_TEST_SET = {
  'pow': 'POW',
  'cla': 'CLA',
  'dir1': 'DIR 1',
  'dir2': 'DIR 2',
  'dir3': 'DIR 3',
}


def _with_data(settings: Mapping[str, str]) -> dict[str, str]:
  return {
    f'{data}_{name}': f'{title} {shown}'
    for data, title in (('fmnist', 'Fashion-MNIST'), ('cifar10', 'CIFAR-10'))
    for name, shown in settings.items()
  }


def _of_data(data: str, settings: Mapping[str, str]) -> dict[str, str]:
  return {f'{data}_{name}': title for name, title in settings.items()}


def _ablation_title(cell: str) -> str:
  """`cifar10_beta0.5_m1.0_m1.0` as beta .5, m1 1, m2 1."""
  weight, *margins = (
    f'{float(part.lstrip("betam")):g}'.removeprefix('0')
    for part in cell.split('_')[1:]
  )
  return f'beta {weight}, m1 {margins[0]}, m2 {margins[1]}'


LAYOUTS: dict[str, Layout] = {
  'fedaboost_text': Layout(
    table='fedaboost_text',
    cells={
      'mnist': 'MNIST',
      'mnist_min64': 'MNIST, 60 % of the images, clients of at least 64',
      'femnist_2': 'FEMNIST',
    },
    rows='metric',
    columns='method',
  ),
  'fedaboost_table1': Layout(
    table='fedaboost_table1',
    cells={
      f'cifar_{share}': f'{share} % of the clients a round'
      for share in (20, 40, 60)
    },
    rows='metric',
    columns='method',
  ),
  'cffl_table1': Layout(
    table='cffl_table1', cells=_CFFL_SIZES, rows='setting', columns='method'
  ),
  'cffl_table2': Layout(
    table='cffl_table2',
    cells=_CFFL_SIZES,
    rows='setting',
    columns='method',
    digits=_WHOLE_PER_CENT,
  ),
  'cffl_classes': Layout(
    table='cffl_classes',
    cells={f'mnist_class_p{number}': f'P{number}' for number in (5, 10, 20)},
    digits=_WHOLE_PER_CENT,
  ),
  'cffl_freerider': Layout(
    table='cffl_freerider', cells={'mnist_p5': 'MNIST P5'}, rows='metric'
  ),
  'corefed_table1_fmnist': Layout(
    table='corefed_table1', cells={'fmnist': 'Fashion-MNIST'}, columns='metric'
  ),
  'corefed_table1_cifar10': Layout(
    table='corefed_table1', cells={'cifar10': 'CIFAR-10'}, columns='metric'
  ),
  'corefed_table3': Layout(
    table='corefed_table3',
    cells={'tradeoff_a': 'a', 'tradeoff_b': 'b'},
    rows='setting',
    columns='metric',
  ),
  'corefed_ablation': Layout(
    table='corefed_ablation',
    cells={'fmnist': 'Fashion-MNIST'},
    columns='metric',
  ),
  'fedquad_table1': Layout(
    table='fedquad_table1',
    cells=_of_data('cifar10', _FEDQUAD_SETTINGS),
    digits=_TENTHS,
  ),
  'fedquad_table5': Layout(
    table='fedquad_table5',
    cells={
      cell: _ablation_title(cell)
      for cell in definitions.TABLES['fedquad_table5'].cells
    },
    rows='setting',
    columns='method',
    digits=_TENTHS,
  ),
  'fedakd_table1_fmnist': Layout(
    table='fedakd_table1',
    cells=_of_data('fmnist', {**_SHIFTS, **_SHARED_DRAWS}),
    digits=_TENTHS,
  ),
  'fedakd_table1_cifar10': Layout(
    table='fedakd_table1',
    cells=_of_data('cifar10', {**_SHIFTS, **_SHARED_DRAWS}),
    digits=_TENTHS,
  ),
  'fedakd_table5': Layout(
    table='fedakd_table5', cells=_with_data(_ONE_TEST_SET), digits=_TENTHS
  ),
  'fedakd_protocols': Layout(
    table='fedakd_protocols',
    cells=_with_data(
      {
        'pow': _SHIFTS['pow'],
        'ics5': _SHIFTS['ics5'],
        'ics5_shared': _SHARED_DRAWS['ics5_shared'],
      }
    ),
    digits=_TENTHS,
  ),
}
