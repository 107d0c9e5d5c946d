"""The Markdown page on the covariate shift of a task's clients."""

import pandas as pd

from tff_fair.launchers.runs import client_names
from tff_fair.launchers.show import markdown
from tff_fair.launchers.show import numbers

# Column -> heading and format.
_COLUMNS = {
  'client_id': ('client', '.0f'),
  'num_examples': ('examples', '.0f'),
  'num_distinct': ('distinct', '.0f'),
  'effective_sample_size': ('effective', '.0f'),
  'effective_share': ('share of all (%)', '.3g'),
  'kl': ('KL', '.3g'),
  'kl_expansion': ('approximation', '.3g'),
  'kl_paper': ('as printed', '.3g'),
  'control_kl': ('control KL', '.3g'),
  'control_expansion': ('its approximation', '.3g'),
}
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
  shown = frame.assign(effective_share=100 * frame['effective_share'])
  columns = [name for name in _COLUMNS if name in shown]
  rows = []
  for name, values in zip(names, shown[columns].to_numpy(), strict=True):
    cells = [
      numbers.format_number(value, _COLUMNS[column][1], '-')
      for column, value in zip(columns, values, strict=True)
    ]
    line = markdown.escape(client_names.one_line(name, _NAME_WIDTH))
    rows.append([f'{cells[0]} {line}'.rstrip(), *cells[1:]])
  ratios = [
    (frame[column] / frame['kl']).median()
    for column in ('kl_expansion', 'kl_paper', 'control_kl')
  ]
  header = [_COLUMNS[column][0] for column in columns]
  return f"""# Covariate shift of the clients

`{' '.join(arguments)}`

What to look for: the approximation of theorem 2.2 (with corrected terms) \
follows the KL divergence of a client's examples from all examples, and the \
control, as many random examples of all, lies far below both.

In nats, between Gaussians of the first {pca_dim} principal components. Median \
over clients, as a multiple of the KL: approximation {ratios[0]:.3g}, as \
printed in the paper {ratios[1]:.3g}, control {ratios[2]:.3g}.

{markdown.table(header, rows, texts=0)}
"""
