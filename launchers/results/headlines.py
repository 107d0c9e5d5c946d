"""The README's table: the headline rows of the results page.

Only runs at hand make a headline, and only with enough seeds.
"""

from collections.abc import Mapping, Sequence
import dataclasses

import pandas as pd

from tff_fair.launchers.results import layouts
from tff_fair.launchers.results import records
from tff_fair.launchers.results import results_tables
from tff_fair.launchers.results import titles
from tff_fair.launchers.show import markdown
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_metrics

MIN_SEEDS = 3
"""Seeds that each number of a headline has at least."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Headline:
  """A row: some methods of a cell by one metric, in the cell's fullest setting.

  Attributes:
    paper: The paper.
    layout: The name of the table of the results page.
    cell: The cell.
    metric: The metric.
    methods: The methods, the paper's own first.
  """

  paper: str
  layout: str
  cell: str
  metric: str
  methods: tuple[str, ...]


HEADLINES = (
  Headline(
    paper='FeDABoost',
    layout='fedaboost_text',
    cell='mnist',
    metric='global_f1',
    methods=('fedaboost', 'fed_avg'),
  ),
  Headline(
    paper='CFFL',
    layout='cffl_table1',
    cell='mnist_p5',
    metric='cf',
    methods=('cffl_u0.1', 'fed_avg'),
  ),
  Headline(
    paper='CFFL',
    layout='cffl_table2',
    cell='mnist_p5',
    metric='client_accuracy_max',
    methods=('cffl_u0.1', 'fed_avg'),
  ),
  Headline(
    paper='CFFL',
    layout='cffl_table1',
    cell='adult_p20',
    metric='cf',
    methods=('cffl_u0.1', 'fed_avg'),
  ),
  Headline(
    paper='CoRe-Fed',
    layout='corefed_table1_fmnist',
    cell='fmnist',
    metric='client_accuracy_mean',
    methods=('corefed', 'q_fed_avg', 'ditto'),
  ),
  Headline(
    paper='CoRe-Fed',
    layout='corefed_table1_cifar10',
    cell='cifar10',
    metric='client_accuracy_mean',
    methods=('corefed', 'q_fed_avg', 'ditto'),
  ),
  Headline(
    paper='FedQuad, CIFAR-10',
    layout='fedquad_table1',
    cell='cifar10_a03_c10',
    metric='global_accuracy',
    methods=('fedquad', 'fed_avg'),
  ),
  Headline(
    paper='FedAKD',
    layout='fedakd_table1_fmnist',
    cell='fmnist_pow',
    metric='cf',
    methods=('fedakd', 'fed_avg'),
  ),
  Headline(
    paper='FedAKD',
    layout='fedakd_table1_cifar10',
    cell='cifar10_ics5',
    metric='cf',
    methods=('fedakd', 'cffl'),
  ),
)


def render(
  frame: pd.DataFrame,
  numbers: Mapping[tuple[str, str, str, str], published.Number],
  headlines: Sequence[Headline] = HEADLINES,
) -> str:
  """Renders the table.

  Args:
    frame: All recorded rows.
    numbers: The published numbers, from `published.read`.
    headlines: The rows; one without runs of enough seeds is left out.

  Returns:
    Markdown.
  """
  runs = frame[frame['source'] == records.RUN]
  body = [
    row
    for headline in headlines
    if (row := _row(headline, runs, numbers)) is not None
  ]
  header = ['experiment', 'what', "ours / the paper's"]
  return markdown.table(header, body, texts=3)


def _row(headline, frame, numbers) -> list[str] | None:
  layout = layouts.LAYOUTS[headline.layout]
  settings = {}
  for entry in results_tables.entries(layout, frame, numbers):
    wanted = (entry.cell, entry.metric) == (headline.cell, headline.metric)
    if wanted and entry.seeds >= MIN_SEEDS:
      settings.setdefault(entry.setting, {})[entry.method] = entry.text
  for setting, texts in settings.items():
    if {*headline.methods} <= {*texts}:
      percent = definitions.TABLES[layout.table].percent
      metric = table_metrics.METRICS[headline.metric].heading(percent)
      shown = [f'{titles.method(m)} {texts[m]}' for m in headline.methods]
      return [f'{headline.paper}, {setting}', metric, '; '.join(shown)]
  return None
