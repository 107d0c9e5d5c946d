"""The Markdown page on the covariate shift of a task's clients."""

import html

import numpy as np
import pandas as pd

from tff_fair.launchers.runs import client_names

_HEADINGS = {
  'client_id': 'client',
  'num_examples': 'examples',
  'num_distinct': 'distinct',
  'effective_sample_size': 'effective',
  'effective_share': 'share of all (%)',
  'kl': 'KL',
  'kl_expansion': 'approximation',
  'kl_paper': 'as printed',
  'control_kl': 'control KL',
  'control_expansion': 'its approximation',
}
# The first columns are numbers of examples.
_NUM_COUNTS = 4
# Characters of a client's name.
_NAME_WIDTH = 60


def render(frame: pd.DataFrame, arguments: list[str], pca_dim: int) -> str:
  """Renders the page.

  Args:
    frame: The rows of `tasks.shift_divergences.measure`; the column `client`
      has the names of the clients, if they have names.
    arguments: The flags that describe the task.
    pca_dim: Number of principal components.

  Returns:
    The text of a Markdown file.
  """
  names = frame.get(client_names.COLUMN, pd.Series('', frame.index))
  frame = frame.drop(columns=client_names.COLUMN, errors='ignore')
  shown = frame.assign(effective_share=100 * frame['effective_share'])
  shown = shown.rename(columns=_HEADINGS)
  ratios = [
    (frame[column] / frame['kl']).median()
    for column in ('kl_expansion', 'kl_paper', 'control_kl')
  ]
  formats = {
    name: '{:.0f}' if i < _NUM_COUNTS else '{:.3g}'
    for i, name in enumerate(shown)
  }
  lines = [
    '# Covariate shift of the clients',
    '',
    f'`{" ".join(arguments)}`',
    '',
    'What to look for: the approximation of theorem 2.2 (with corrected terms)'
    " follows the KL divergence of a client's examples from all examples, and"
    ' the control, as many random examples of all, lies far below both.',
    '',
    f'In nats, between Gaussians of the first {pca_dim} principal components.'
    f' Median over clients, as a multiple of the KL: approximation'
    f' {ratios[0]:.3g}, as printed in the paper {ratios[1]:.3g}, control'
    f' {ratios[2]:.3g}.',
    '',
    '| ' + ' | '.join(shown) + ' |',
    '|' + '---:|' * len(shown.columns),
  ]
  for index, row in shown.iterrows():
    cells = [
      '-' if np.isnan(value) else formats[name].format(value)
      for name, value in row.items()
    ]
    cells[0] = f'{cells[0]} {_escaped(names[index])}'.rstrip()
    lines.append('| ' + ' | '.join(cells) + ' |')
  return '\n'.join(lines) + '\n'


def _escaped(name: str) -> str:
  """A name as a cell of a Markdown table."""
  line = html.escape(client_names.one_line(name, _NAME_WIDTH))
  return line.replace('|', '&#124;')
