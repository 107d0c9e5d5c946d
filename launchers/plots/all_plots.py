"""Draws all pictures of a finished run."""

from collections.abc import Sequence
import json
import os
import pathlib

from tff_fair.launchers.options import methods
from tff_fair.launchers.plots import client_plots
from tff_fair.launchers.plots import distance_plots
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import run_plots
from tff_fair.launchers.runs import run_files


def write(
  run: pathlib.Path, compare_with: Sequence[str | os.PathLike[str]]
) -> list[pathlib.Path]:
  """Draws a run, in some pictures together with others.

  Args:
    run: The directory of a finished run; the pictures go to its `plots`.
    compare_with: The directories of other finished runs.

  Returns:
    The files written.

  Raises:
    FileNotFoundError: If a run lacks one of its files.
    ValueError: If a file is not as `launchers.train` writes it.
  """
  paths = [run, *map(pathlib.Path, compare_with)]
  algorithms = [_algorithm(path) for path in paths]
  labels = run_files.labels([*map(methods.title, algorithms)], paths)
  runs = dict(zip(labels, paths, strict=True))
  styles = dict(zip(labels, method_styles.of_runs(algorithms), strict=True))
  folder = run / 'plots'
  return [
    *run_plots.write_plots(runs, styles, folder),
    *distance_plots.write_plots(runs, styles, folder),
    *client_plots.write_plots(run, folder),
  ]


def check_files(run: str | os.PathLike[str]) -> None:
  """Reads what `write` reads of a run that it draws together with another.

  Args:
    run: The directory of a finished run.

  Raises:
    OSError: If a file is missing or cannot be read.
    ValueError: If a file is not as `launchers.train` writes it.
  """
  run = pathlib.Path(run)
  _algorithm(run)
  run_plots.check_files(run)
  distance_plots.check_files(run)


def _algorithm(run) -> str:
  path = run / 'summary.json'
  try:
    algorithm = json.loads(path.read_text())['algorithm']
  # Lists within lists within lists.
  except (ValueError, TypeError, KeyError, RecursionError):
    algorithm = None
  if not isinstance(algorithm, str):
    raise ValueError(
      f"{path.name} must have the name of the run's algorithm, found none in"
      f' {path}.'
    )
  return algorithm
