"""The plots of a reproduced table.

Plots of single clients are of the runs with the first seed, others of all runs.
"""

from collections.abc import Iterable, Mapping
import math
import pathlib

from matplotlib import figure as mpl_figure

from tff_fair.launchers import frame
from tff_fair.launchers import summary
from tff_fair.launchers.plots import client_plots
from tff_fair.launchers.plots import embedding_plots
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.plots import run_plots
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import embeddings
from tff_fair.launchers.show import numbers
from tff_fair.launchers.tables import table_runs

# Column of `client_plots.describe_clients` -> what it counts.
_AMOUNTS = {
  'num_train': 'Training examples of the client',
  'num_classes': 'Classes of the client',
}
_MAX_COLUMNS = 3
_SEED = 0


def write_figures(
  name: str,
  planner: table_runs.Planner,
  cells: Iterable[str],
  plots_dir: pathlib.Path,
) -> list[pathlib.Path]:
  """Draws the figures of a table.

  Args:
    name: The table.
    planner: The planner of the table's runs, all finished.
    cells: The cells to draw.
    plots_dir: The folder to write to; created if it is missing.

  Returns:
    The files written.
  """
  plots_dir.mkdir(parents=True, exist_ok=True)
  written = []
  for figure, methods in planner.table.figures.items():
    for cell in cells:
      draw = FIGURES[figure]
      own = [m for m in methods if m in planner.table.methods_of(cell)]
      if own:
        written += draw(planner, cell, own, plots_dir / f'{name}_{cell}')
  return written


def scatter(
  standalone: frame.Run, runs: Mapping[str, frame.Run], path: pathlib.Path
) -> mpl_figure.Figure:
  """Draws each client's accuracy against its accuracy when training alone.

  The title of a panel has the CF coefficient. Clients without data are not
  drawn. Writes the PNG file, and returns the figure.
  """
  alone = standalone.clients['accuracy']
  clients = client_plots.describe_clients(standalone)
  few = len(clients) <= client_plots.MAX_LINES
  draw = _draw_few if few else _draw_many
  figure, panels = _panels(len(runs))
  for (title, run), axes in zip(runs.items(), panels, strict=True):
    points = draw(axes, clients, alone, run.clients['accuracy'])
    axes.axline(
      (alone.max(),) * 2,
      slope=1,
      color='gray',
      linestyle=':',
      label='as good as alone',
    )
    coefficient = numbers.format_number(
      summary.cf_coefficient(standalone, run), '.2f', 'undefined'
    )
    axes.set_title(f'{title}\nCF coefficient {coefficient}')
    plot_parts.tidy(axes)
  figure.supxlabel('Accuracy of the client alone')
  figure.supylabel('Accuracy in the end')
  if few:
    client_plots.draw_legend(figure, panels)
  else:
    panels[0].legend(loc='lower right', frameon=False)
    amount = client_plots.amount_column(clients)
    figure.colorbar(
      points, ax=panels, label=_AMOUNTS[amount], format='{x:,.0f}'
    )
  plot_parts.save(figure, path)
  return figure


def _draw_few(axes, clients, alone, together):
  """A point per client, each with its colour and its marker."""
  for client in clients.itertuples():
    style = client.style
    points = axes.scatter(
      alone[client.client_id],
      together[client.client_id],
      s=50 * style.scale**2,
      color=style.color,
      marker=style.marker,
      edgecolors='white',
      linewidths=0.5,
      label=client.label,
      zorder=3,
    )
  return points


def _draw_many(axes, clients, alone, together):
  """A point per client, coloured by its amount of data."""
  honest = clients[clients['num_train'] > 0]
  return axes.scatter(
    alone[honest['client_id']],
    together[honest['client_id']],
    s=40,
    c=honest[client_plots.amount_column(clients)],
    cmap=client_plots.COLOR_MAP,
    edgecolors='black',
    linewidths=0.5,
    zorder=3,
  )


def _read(planner, cell, method, role='run', seed=_SEED) -> frame.Run:
  return frame.read_run(planner.run(cell, method, seed, role).output_dir)


def _draw_accuracy(planner, cell, methods, stem) -> list[pathlib.Path]:
  """The clients over the rounds, training alone and in each method."""
  written = []
  for method in methods:
    runs = {
      'standalone': _read(planner, cell, method, 'standalone'),
      method: _read(planner, cell, method),
    }
    written.append(_file(stem, f'{method}_client_accuracy'))
    client_plots.client_accuracy(runs, written[-1])
  return written


def _draw_scatter(planner, cell, methods, stem) -> list[pathlib.Path]:
  """The clients of all methods against the same clients training alone."""
  alone = _read(planner, cell, methods[0], 'standalone')
  runs = {method: _read(planner, cell, method) for method in methods}
  path = _file(stem, 'scatter')
  scatter(alone, runs, path)
  return [path]


def _draw_reputation(planner, cell, methods, stem) -> list[pathlib.Path]:
  """The clients' reputations in each method."""
  written = []
  for method in methods:
    written.append(_file(stem, f'{method}_reputation'))
    client_plots.reputation(_read(planner, cell, method), written[-1])
  return written


def _draw_distances(planner, cell, methods, stem) -> list[pathlib.Path]:
  """The methods over the rounds, in each space."""
  runs = {
    method: [_read(planner, cell, method, seed=s) for s in planner.seeds]
    for method in methods
  }
  algorithms = [planner.table.methods[name]['algorithm'] for name in methods]
  found = method_styles.of_runs(algorithms)
  styles = dict(zip(methods, found, strict=True))
  written = []
  for space in distances.MODEL_SPACES:
    written.append(_file(stem, f'{space}_distances'))
    run_plots.distance_curves(runs, styles, space, written[-1])
  return written


def _draw_embeddings(planner, cell, methods, stem) -> list[pathlib.Path]:
  """Test examples, embedded by the global model of each method."""
  path = _file(stem, 'embeddings')
  seeds = {m: [planner.run(cell, m, s) for s in planner.seeds] for m in methods}
  embedding_plots.scatter(
    {
      method: [
        embeddings.of_run(
          run.settings,
          run.output_dir,
          None,
          max_classes=embedding_plots.MAX_CLASSES,
          max_examples=embedding_plots.MAX_EXAMPLES,
        )
        for run in runs
      ]
      for method, runs in seeds.items()
    },
    path,
  )
  return [path]


# Name -> `(planner, cell, methods, stem of the files) -> files`.
FIGURES = {
  'embeddings': _draw_embeddings,
  'client_accuracy': _draw_accuracy,
  'scatter': _draw_scatter,
  'reputation': _draw_reputation,
  'distances': _draw_distances,
}


def _panels(number: int):
  """A figure with that many axes of the same scale, in rows of equal length."""
  lines = math.ceil(number / _MAX_COLUMNS)
  columns = math.ceil(number / lines)
  size = (2.6 + 3.2 * columns, 0.6 + 3.2 * lines)
  figure = mpl_figure.Figure(figsize=size, layout='constrained')
  grid = figure.subplots(
    lines, columns, sharex=True, sharey=True, squeeze=False
  )
  panels, spare = list(grid.flat)[:number], list(grid.flat)[number:]
  for axes in panels:
    axes.tick_params(labelbottom=True)  # There may be no panel below.
  for axes in spare:
    axes.set_axis_off()
  return figure, panels


def _file(stem: pathlib.Path, ending: str) -> pathlib.Path:
  # Not `with_suffix`: names of methods contain dots.
  return stem.with_name(f'{stem.name}_{ending}.png')
