"""Draws CoRe-Fed's distances and the clients' accuracy over the rounds."""

from collections.abc import Mapping, Sequence
import os
import pathlib

from matplotlib import axes as mpl_axes
from matplotlib import figure as mpl_figure
import pandas as pd

from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.plots import run_plots
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import run_files

_Path = str | os.PathLike[str]


@plot_parts.plain_text()
def distance_curves(
  runs: Mapping[str, Sequence[_Path]],
  styles: run_plots.Styles,
  space: str,
  path: _Path,
) -> mpl_figure.Figure:
  """Draws the clients' mean accuracy and both distances over the rounds.

  A line is the mean over the runs of a label, and its band the mean plus and
  minus one standard deviation. The line is empty if the runs have no distances.

  Args:
    runs: The run directories of each label, which differ in their seeds.
    styles: The style of each label.
    space: One of `distances.MODEL_SPACES`.
    path: The PNG file to write.

  Returns:
    The figure that was written.

  Raises:
    FileNotFoundError: If a run has no `metrics.csv`.
    ValueError: If a file is not as `launchers.train` writes it.
  """
  shown = [run_plots.CLIENT_ACCURACY, *panels(space)]
  columns = _columns(space)
  curves = {label: _evaluations(of, columns) for label, of in runs.items()}
  figure = mpl_figure.Figure(figsize=(14, 4), layout='constrained')
  all_axes = figure.subplots(1, len(shown))
  means = {
    label: frame.groupby('round').mean().reset_index()
    for label, frame in curves.items()
  }
  for panel, axes in zip(shown, all_axes, strict=True):
    run_plots.draw_panel(axes, panel, means, styles)
    axes.set_title(panel.title, fontsize=11)
    for label, frame in curves.items():
      by_round = frame.groupby('round')[panel.column]
      _draw_band(axes, by_round, styles[label].color)
  plot_parts.draw_legend(
    figure,
    all_axes[0].lines,
    'Accuracy and distances (↑ higher is better, ↓ lower is better)',
  )
  figure.get_layout_engine().set(wspace=0.05)
  plot_parts.save(figure, path)
  return figure


def check_files(run: _Path) -> None:
  """Reads what the plots of this module read.

  Args:
    run: The run directory, which has a `metrics.csv`.

  Raises:
    ValueError: If a file is not as `launchers.train` writes it.
  """
  for space in distances.MODEL_SPACES:
    _evaluations([run], _columns(space))


def panels(space: str) -> list[run_plots.Panel]:
  """The panels of a space.

  Args:
    space: One of `distances.MODEL_SPACES`.

  Returns:
    A panel for each distance.
  """
  between = distances.MODEL_SPACES[space]
  return [
    run_plots.Panel(
      f'{space}_{name}',
      f'{title} between {between} ↓',
      f'{title} ({unit})',
      logarithmic=True,
    )
    for name, (title, unit) in distances.DISTANCES.items()
  ]


def write_plots(
  runs: Mapping[str, _Path], styles: run_plots.Styles, plots_dir: _Path
) -> list[pathlib.Path]:
  """Draws every space in which a run has distances.

  Args:
    runs: The run directory of each label.
    styles: The style of each label.
    plots_dir: The folder to write to, which exists.

  Returns:
    The files written; it may be none.

  Raises:
    FileNotFoundError: If a run has no `metrics.csv`.
    ValueError: If a file is not as `launchers.train` writes it.
  """
  written = []
  for space in distances.MODEL_SPACES:
    columns = _columns(space)
    if any(len(_evaluations([run], columns)) for run in runs.values()):
      written.append(pathlib.Path(plots_dir) / f'{space}_distances.png')
      seeds = {label: [run] for label, run in runs.items()}
      distance_curves(seeds, styles, space, written[-1])
  return written


def _columns(space) -> list[str]:
  """The columns that `distance_curves` draws."""
  shown = [run_plots.CLIENT_ACCURACY, *panels(space)]
  return [panel.column for panel in shown]


def _evaluations(directories, columns) -> pd.DataFrame:
  """The evaluations of some runs; no row if one of them lacks a column."""
  files = [pathlib.Path(directory) / 'metrics.csv' for directory in directories]
  columns = ['round', *columns]
  if not all(run_files.has_columns(file, columns) for file in files):
    return pd.DataFrame(columns=columns, dtype=float)
  return pd.concat(run_files.read(file, columns) for file in files).dropna()


def _draw_band(axes: mpl_axes.Axes, by_round, color: str) -> None:
  mean, sd = by_round.mean(), by_round.std()
  if sd.notna().any():  # With several runs.
    axes.fill_between(
      mean.index, mean - sd, mean + sd, color=color, alpha=0.2, linewidth=0
    )
