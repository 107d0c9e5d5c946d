"""Plans the runs that a table needs."""

from collections.abc import Iterable, Sequence
import pathlib
import shlex
from typing import NamedTuple

from tff_fair import checks
from tff_fair import tasks
from tff_fair.launchers import command_names
from tff_fair.launchers.execution import worker
from tff_fair.launchers.options import presets
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics
from tff_fair.tasks import ehr_synthetic

AND = ' && '
"""Stands between the commands of a number that compares runs."""

# The role of the run that a metric is of, next to its references.
_OWN = 'run'
# Flags that do not belong to the name of a run.
_UNNAMED = ('output_dir', 'data_dir', *planned_run.SEED_FLAGS)
# Methods whose distances a table draws over the rounds. Tables share runs.
_DRAWN = {
  method
  for table in definitions.TABLES.values()
  for method in table.figures.get('distances', ())
}


class Row(NamedTuple):
  """A number of a table, averaged over seeds.

  Attributes:
    cell: The cell.
    method: The method.
    metric: The metric.
    runs: For each seed the run, then the references of the metric.
  """

  cell: str
  method: str
  metric: str
  runs: tuple[tuple[planned_run.PlannedRun, ...], ...]


def choose(
  name: str, cells: Sequence[str], methods: Sequence[str], dataset: str | None
) -> tuple[definitions.Table, list[str]]:
  """Restricts a table to what was requested.

  Args:
    name: The table.
    cells: The requested cells; all if empty.
    methods: The requested methods; all if empty.
    dataset: The data that replace those of cells.

  Returns:
    The table with the methods, and the cells without repetitions.

  Raises:
    launchers.options.settings.SettingsError: If the table lacks a cell or a
      method, or has no cell whose data can be replaced.
  """
  table = definitions.TABLES[name]
  cells = list(dict.fromkeys(cells)) or list(table.cells)
  _check_known('cells', cells, list(table.cells))
  known = list(
    dict.fromkeys(m for cell in cells for m in table.methods_of(cell))
  )
  _check_known('methods', methods, known)
  data = [table.cells[cell].data for cell in cells]
  if dataset and dataset not in map(definitions.STAND_INS.get, data):
    raise settings_lib.SettingsError(
      f'--dataset={dataset} must be given with cells whose data it can'
      f' replace, found only {", ".join(dict.fromkeys(data))}.'
    )
  return table.restricted_to(methods or known), cells


def _check_known(flag, names, known) -> None:
  for name in names:
    if name not in known:
      raise settings_lib.SettingsError(
        checks.unknown_name(f'Each of --{flag}', name, known)
      )


class Planner:
  """Plans the runs of a table for one call of `launchers.reproduce`.

  Attributes:
    table: The table.
    seeds: The values of all seeds.
  """

  def __init__(
    self,
    table: definitions.Table,
    *,
    num_seeds: int,
    rounds: int | None,
    scale: float,
    scale_clients: float = 1.0,
    dataset: str | None,
    data_dir: str | None,
    output_dir: pathlib.Path,
  ):
    """Takes the flags of the call; the seeds are 0..num_seeds-1."""
    self.table = table
    self.seeds = range(num_seeds)
    self._dataset = dataset
    self._scale = scale
    self._scale_clients = scale_clients
    given = {'rounds': rounds, 'data_dir': data_dir}
    # A method of a table may have rounds of its own.
    self._overrides = {n: v for n, v in given.items() if v is not None}
    self._folder = output_dir / 'runs'
    self._equal = planned_run.EqualRuns(output_dir)
    # A run is used in many rows, and its flags take a while to resolve.
    self._runs = {}

  def run(
    self, cell: str, method: str, seed: int, role: str = _OWN
  ) -> planned_run.PlannedRun:
    """Returns the run of a method in a cell, or of a reference by its name.

    Raises:
      launchers.options.settings.SettingsError: If flags do not describe a run.
    """
    key = cell, method, seed, role
    if key not in self._runs:
      self._runs[key] = self._resolved(*key)
    return self._runs[key]

  def _resolved(self, cell, method, seed, role) -> planned_run.PlannedRun:
    setting = self.table.cells[cell]
    preset, flags = setting.preset, self.table.flags_of(cell, method)
    if role != _OWN:
      reference = self.table.references[role]
      preset = reference.preset or preset
      if reference.flags is not None:
        flags = {**reference.flags, **setting.method_flags.get(role, {})}
    possible = definitions.STAND_INS.get(setting.data)
    command = {
      'preset': preset,
      **setting.flags,
      **flags,
      'task': possible if possible == self._dataset else None,
      **self._share(preset),
      **self._overrides,
    }
    command |= self._fewer_clients(cell, command)
    folder = self._folder / preset / _folder_name(preset, command)
    run = planned_run.plan(
      command,
      seed,
      folder / f'seed_{seed}',
      only_last_distances=not (
        method in _DRAWN and 'distances' in self.table.figures
      ),
    )
    return self._equal.place(run)

  def rows(self, cells: Iterable[str]) -> list[Row]:
    """The rows of cells, except those that compare a run with itself.

    They are by metric, cell and method in the table's order.

    Raises:
      launchers.options.settings.SettingsError: If flags do not describe a run.
    """
    found = []
    for metric in self.table.metrics:
      roles = _OWN, *table_metrics.METRICS[metric].references
      for cell in cells:
        for method in self.table.methods_of(cell):
          runs = tuple(
            tuple(self.run(cell, method, seed, role) for role in roles)
            for seed in self.seeds
          )
          if len({run.output_dir for run in runs[0]}) == len(roles):
            found.append(Row(cell, method, metric, runs))
    return found

  def _share(self, preset) -> dict[str, float]:
    """The flag that reduces the data of a run."""
    if self._scale == 1:
      return {}
    # The number of records to generate is a flag.
    if presets.PRESETS[preset].shared['task'] == 'ehr':
      return {'ehr_scale': ehr_synthetic.DEFAULT_SCALE * self._scale}
    return {'data_fraction': self._scale}

  def _fewer_clients(self, cell, command) -> dict[str, float]:
    """The flags for a share of the clients, each with as many examples."""
    if self._scale_clients == 1:
      return {}
    settings = planned_run.resolve(command)
    usual, share = settings['num_clients'], f'{self._scale_clients:g}'
    if usual is None:
      raise settings_lib.SettingsError(
        f'--scale_clients must be 1 for the cell {cell}, whose clients are'
        f' those of the data, found {share}.'
      )
    number = round(self._scale_clients * usual)
    if number < 2:
      raise settings_lib.SettingsError(
        '--scale_clients must leave two clients or more of each cell, found'
        f' {share} of {usual} in {cell}.'
      )
    fraction = settings['data_fraction'] * number / usual
    return {'num_clients': number, 'data_fraction': fraction}


def train_command(arguments: Iterable[str], seed: int | str) -> str:
  """Returns a command of `launchers.train`, without an output directory.

  Args:
    arguments: Flags of the run, as of `PlannedRun.arguments`.
    seed: The value of all seeds, or a variable of the shell.
  """
  seeds = (f'--{name}={seed}' for name in planned_run.SEED_FLAGS)
  words = command_names.command('train'), *map(shlex.quote, arguments), *seeds
  return ' '.join(words)


def distinct(rows: Sequence[Row]) -> list[planned_run.PlannedRun]:
  """All runs of the rows without repetitions, references first, by seed."""
  runs = [
    run for row in rows for compared in row.runs for run in reversed(compared)
  ]
  found = {}
  for run in runs:
    found.setdefault(run.output_dir, run)
  return sorted(found.values(), key=lambda run: run.seed)


def check_data(
  runs: Sequence[planned_run.PlannedRun],
) -> worker.Report | None:
  """Builds the task of each preset once, so that missing files show at once.

  Returns:
    Why a task cannot be built, with the data that can stand in for it.
  """
  from tff_fair.launchers.runs import training

  for run in {run.preset: run for run in runs}.values():
    try:
      worker.build_task(run.settings)
    except training.USER_ERRORS as error:
      sentence = str(error)
      stand_in = definitions.STAND_INS.get(run.settings['task'])
      if stand_in and isinstance(error, tasks.DataNotFoundError):
        sentence += f' --dataset={stand_in} uses other data instead.'
      return worker.Report(worker.FAILED, sentence)
  return None


def _folder_name(preset, command) -> str:
  """The method, and the settings that differ from the preset."""
  settings = planned_run.resolve(command)
  algorithm = settings['algorithm']
  usual = planned_run.resolve({'preset': preset, 'algorithm': algorithm})
  others = [
    f'{name}={value}'
    for name, value in sorted(settings.items())
    if name not in _UNNAMED and value != usual[name]
  ]
  return '-'.join([algorithm, *others])
