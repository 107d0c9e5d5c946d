"""Runs that programs plan: commands of `launchers.train`, not yet started."""

from collections.abc import Iterable, Mapping
import dataclasses
import pathlib
from typing import Any

from tff_fair import files
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags

SEED_FLAGS = ('model_seed', 'client_seed', 'data_seed')


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlannedRun:
  """A command of `launchers.train`.

  `arguments` are all flags except the seeds, which are all `seed`, and the
  output directory, which is a function of the flags. With `only_last_distances`
  those of earlier rounds, which no number needs, are not measured.
  """

  preset: str | None
  arguments: tuple[str, ...]
  seed: int
  output_dir: pathlib.Path
  settings: Mapping[str, Any] = dataclasses.field(compare=False)
  only_last_distances: bool = dataclasses.field(default=False, compare=False)

  @property
  def flags_text(self) -> str:
    """The content of the run's flags file."""
    return settings_lib.to_text(self.settings, self.preset)

  def is_finished(self) -> bool:
    """Returns whether the directory holds this run, finished.

    Raises:
      launchers.options.settings.SettingsError: If it holds another run.
    """
    same = settings_lib.check_same_run(self.output_dir, self.flags_text)
    return same and (self.output_dir / 'summary.json').is_file()

  def without_seeds(self) -> dict[str, str]:
    """The settings that the numbers depend on, without the seeds."""
    relevant = settings_lib.relevant(self.flags_text)
    return {n: v for n, v in relevant.items() if n not in SEED_FLAGS}


class EqualRuns:
  """Gives runs with equal settings one directory, so that each is trained once.

  That of a finished run under a folder goes before the ones that are planned.
  """

  def __init__(self, folder: pathlib.Path):
    """Finds what is finished in all directories below a folder."""
    self._places = {}
    for path in sorted(folder.rglob('summary.json')):
      try:
        file = path.parent / settings_lib.FLAGS_FILE
        files.check_regular(file)
        text = file.read_text()
      except (OSError, ValueError):
        continue  # Not of a run, or damaged.
      self._places.setdefault(_identity(text), path.parent)

  def place(self, run: PlannedRun) -> PlannedRun:
    """Returns the run in the directory of its settings.

    If it is finished in its own directory, it stays there.

    Raises:
      SettingsError: If its own directory holds another run.
    """
    if run.is_finished():
      return run
    place = self._places.setdefault(_identity(run.flags_text), run.output_dir)
    if place == run.output_dir:
      return run
    settings = {**run.settings, 'output_dir': str(place)}
    return dataclasses.replace(run, output_dir=place, settings=settings)


def group(runs: Iterable[PlannedRun]) -> list[tuple[PlannedRun, ...]]:
  """Puts runs together that differ in their seeds alone, in their order."""
  found = {}
  for run in runs:
    found.setdefault(tuple(sorted(run.without_seeds().items())), []).append(run)
  return list(map(tuple, found.values()))


def plan(
  flags: Mapping[str, Any],
  seed: int,
  output_dir: pathlib.Path,
  only_last_distances: bool = False,
) -> PlannedRun:
  """Plans a run; a flag whose value is None is not given.

  Raises:
    SettingsError: If the flags do not describe a run.
  """
  seeds = dict.fromkeys(SEED_FLAGS, seed)
  return PlannedRun(
    preset=flags.get('preset'),
    arguments=as_arguments(flags),
    seed=seed,
    output_dir=output_dir,
    settings=resolve({**flags, **seeds, 'output_dir': output_dir}),
    only_last_distances=only_last_distances,
  )


def as_arguments(flags: Mapping[str, Any]) -> tuple[str, ...]:
  """Formats flags as on a command line, without those that are None.

  The value of a flag that is repeated is a list.
  """
  return tuple(
    f'--{name}={item}'
    for name, value in flags.items()
    for item in (value if isinstance(value, list) else [value])
    if item is not None
  )


def resolve(flags: Mapping[str, Any]) -> dict[str, Any]:
  """Resolves flags of `launchers.train` to the settings of a run.

  Raises:
    SettingsError: If the flags do not describe a run.
  """
  flag_values = train_flags.parse(list(as_arguments(flags)))
  return settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)


def _identity(text) -> tuple[tuple[str, str], ...]:
  """All settings, of a flags file, that the files of a run depend on."""
  settings = settings_lib.parse_text(text)
  end = {n: v for n, v in settings.items() if n in settings_lib.OF_THE_END}
  return tuple(sorted({**settings_lib.relevant(text), **end}.items()))
