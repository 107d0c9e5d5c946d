"""Draws the accuracy of private runs against their epsilon.

  python examples/privacy.py privacy.png runs/privacy/*

The runs are directories of `launchers.train`. Those without noise, of infinite
epsilon, are horizontal lines.
"""

import collections
import sys

import matplotlib
from matplotlib import pyplot as plt

from tff_fair.launchers import frame
from tff_fair.launchers.options import methods
from tff_fair.launchers.plots import method_styles

_PANELS = {
  'client_accuracy_mean': 'mean accuracy of the clients',
  'client_accuracy_worst10': 'accuracy of the worst 10 %',
}


def draw(runs: list[frame.Run]) -> matplotlib.figure.Figure:
  """A panel for each measure, a line for each method."""
  found = collections.defaultdict(list)
  for run in runs:
    found[run.algorithm].append(run.end)
  figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout='constrained')
  for axes, (column, title) in zip(panels, _PANELS.items(), strict=True):
    for name, ends in sorted(found.items()):
      style = method_styles.of_runs([name])[0]
      private = sorted(
        (end['epsilon'], end[column]) for end in ends if 'epsilon' in end
      )
      if private:
        axes.plot(
          *zip(*private, strict=True),
          color=style.color,
          marker=style.marker,
          label=methods.title(name),
        )
      for end in ends:
        if 'epsilon' not in end:
          axes.axhline(end[column], color=style.color, linestyle=':')
    axes.set(xscale='log', xlabel='epsilon', title=title, ylim=(0, 1))
    axes.xaxis.set_major_formatter('{x:g}')
    axes.grid(alpha=0.3)
  panels[0].legend(title='dotted: without noise')
  return figure


if __name__ == '__main__':
  draw(frame.read_runs(sys.argv[2:])).savefig(sys.argv[1], dpi=120)
