"""Draws all pictures of a finished run."""

from collections.abc import Sequence
import os
import pathlib

from absl import logging

from tff_fair.launchers import frame
from tff_fair.launchers.plots import client_plots
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import run_plots


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
    FrameError: If a file of a run is missing, or not as `launchers.train`
      writes it.
  """
  runs = {r.label: r for r in frame.read_runs([run, *compare_with])}
  looks = method_styles.of_runs([r.algorithm for r in runs.values()])
  styles = dict(zip(runs, looks, strict=True))
  folder = run / 'plots'
  folder.mkdir(parents=True, exist_ok=True)
  written = [folder / 'learning_curves.png']
  run_plots.learning_curves(runs, styles, written[-1])
  path = folder / 'client_f1.png'
  if run_plots.client_f1_distribution(runs, styles, path):
    written.append(path)
  else:
    # Training without test data is legitimate, and has curves.
    logging.warning('%s is not drawn: no client has test data.', path.name)
  for space, panels in run_plots.DISTANCES.items():
    if any(len(r.curve(panels[0].column)) for r in runs.values()):
      written.append(folder / f'{space}_distances.png')
      seeds = {label: [r] for label, r in runs.items()}
      run_plots.distance_curves(seeds, styles, space, written[-1])
  (own, *_) = runs.values()
  if len(own.curve('personal_accuracy')):
    written.append(folder / 'client_accuracy.png')
    title = 'Accuracy of each client’s model'
    client_plots.client_accuracy({title: own}, written[-1])
  if 'reputation' in own.reports:
    written.append(folder / 'reputation.png')
    client_plots.reputation(own, written[-1])
  return written
