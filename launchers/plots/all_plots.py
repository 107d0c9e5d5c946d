"""All pictures of runs: those that training writes, and of a report."""

from collections.abc import Sequence
import os
import pathlib

from absl import logging
from matplotlib import figure as mpl_figure

from tff_fair.launchers import frame
from tff_fair.launchers.plots import client_plots
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.plots import run_plots


def draw(runs: Sequence[frame.Run]) -> dict[str, mpl_figure.Figure]:
  """Draws runs beside each other: name -> figure, of what they have."""
  by_label = {run.label: run for run in runs}
  styles = run_plots.find_styles(by_label)
  figures = {
    'learning_curves': run_plots.learning_curves(by_label, styles),
    'client_f1': run_plots.client_scores(by_label, styles, 'f1'),
  }
  for space, panels in run_plots.DISTANCES.items():
    if any(len(run.curve(panels[0].column)) for run in runs):
      figures[f'{space}_distances'] = run_plots.distance_curves(
        {run.label: [run] for run in runs}, styles, space
      )
  return {name: figure for name, figure in figures.items() if figure}


def write(
  run: pathlib.Path, compare_with: Sequence[str | os.PathLike[str]]
) -> list[pathlib.Path]:
  """Draws a run, in some pictures together with other finished runs.

  Returns the files, which go to the run's folder `plots`. Raises `FrameError`
  if a file of a run is missing, or not as `launchers.train` writes it.
  """
  own, *others = frame.read_runs([run, *compare_with])
  figures = draw([own, *others])
  if 'client_f1' not in figures:
    # Training without test data is legitimate, and has curves.
    logging.warning('client_f1.png is not drawn: no client has test data.')
  if len(own.curve('personal_accuracy')):
    title = 'Accuracy of each client’s model'
    figures['client_accuracy'] = client_plots.client_accuracy({title: own})
  if 'reputation' in own.reports:
    figures['reputation'] = client_plots.reputation(own)
  folder = run / 'plots'
  folder.mkdir(parents=True, exist_ok=True)
  written = [folder / f'{name}.png' for name in figures]
  for figure, path in zip(figures.values(), written, strict=True):
    plot_parts.save(figure, path)
  return written
