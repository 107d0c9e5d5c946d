"""Draws the divergence of each client's inputs from the inputs of all."""

import os
import pathlib

from matplotlib import figure as mpl_figure
from matplotlib import ticker
import numpy as np

from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import run_files

# Column of clients.csv -> label and marker.
_SERIES = {
  'kl': ('exact', 'o'),
  'kl_expansion': ('approximation (theorem 2.2, with corrected terms)', 'x'),
  'control_kl': ('control: as many random examples of all', 's'),
}


def divergences(
  clients_file: str | os.PathLike[str], path: str | os.PathLike[str]
) -> mpl_figure.Figure:
  """Draws the divergence of each client, its approximation and its control.

  The axis is logarithmic: values that are not positive, or undefined, are not
  drawn.

  Args:
    clients_file: The clients.csv of `launchers.covariate_shift`.
    path: The PNG file to write.

  Returns:
    The figure that was written.

  Raises:
    FileNotFoundError: If there is no such file.
    ValueError: If it is not as `launchers.covariate_shift` writes it.
  """
  frame = run_files.read(pathlib.Path(clients_file), ['client_id', *_SERIES])
  figure = mpl_figure.Figure(figsize=(8, 4.8), layout='constrained')
  axes = figure.subplots()
  for index, (column, (label, marker)) in enumerate(_SERIES.items()):
    values = frame[column].to_numpy(float)
    axes.plot(
      frame['client_id'],
      np.where(values > 0, values, np.nan),
      color=method_styles.COLORS[index],
      marker=marker,
      linestyle='',
      label=label,
    )
  axes.set(
    title="Divergence of the clients' inputs from those of all",
    xlabel='Client',
    ylabel='KL divergence (nats)',
    yscale='log',
  )
  axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
  plot_parts.tidy(axes)
  figure.legend(loc='outside lower center', frameon=False)
  plot_parts.save(figure, path)
  return figure
