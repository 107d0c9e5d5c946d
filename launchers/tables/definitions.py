"""The published tables as data: their runs and their metrics.

A run is a command of `launchers.train`: a preset and flags. A table is a grid
of runs, cells (settings) by methods, with some metrics of `table_metrics` for
each run. `tables.csv` has a row per table, `cells.csv` and `methods.csv` a row
per cell and method of one or more tables; flags are FLAG=VALUE. To add a table,
add rows there and its numbers to `published.csv`.

What is ours in them, since the papers leave it open:

- CFFL gives its own learning rates only, which is what the baselines and the
  pretraining have here. Those of the authors' public code are methods of their
  own, `_authors_rate`; its FedAvg on Adult has CFFL's rate. Figures 1 and 2
  have theta_u 1, which table 2 has not. The paper's Standalone in table 2 is
  the participant that is best in CFFL.
  `cffl_why` changes one thing at a time towards that code, up to its CFFL as
  it is; there Standalone has its learning rates, and the cells `script_` its
  inputs, numbers of examples and rounds. What it prints for FedAvg and DSSGD in
  table 2 is the accuracy of the participant that is best in CFFL, not their
  maximum: as a rule `accuracy_of_largest`.
- FeDABoost: `cohort_classes` counts classes, and keeps gamma, as an older state
  of the authors' public code does; it is not that code. `sgd` is FeDABoost-1;
  on FEMNIST `fedaboost` is FeDABoost-2, by AdamW. Medians and variances are of
  the F1 over the labels that occur, as of scikit-learn, and over a client's own
  labels; the paper does not say which. In `mnist_min64` a client has 64
  examples or more, as in the authors' public preprocessing; here the small
  clients get examples of the large ones, there they are left out.
  `fedaboost_why` asks what the paper's lead on MNIST may come from: its methods
  and cells differ from the paper's text by one thing each, in `all_together` by
  all that the authors' public script does. There, too, the number of clients
  before the small ones are left out is ours, chosen so that about as many are
  left as the paper has. `_nesterov` has the momentum that the script gives
  FeDABoost's clients on all data, and FedAvg's on CIFAR-10 alone (there not
  Nesterov's).
- CoRe-Fed: the paper does not say which values of its table 2 are those of
  table 1; the presets have the first of each, `ditto_1` and so on the others.
  FedAvg is neither in its table 1 nor in the figure of its ablation. The paper
  names neither the data nor the setting of table 3 and the ablation. `_script`
  compute as the authors' public code and the Ditto of the platform on which it
  builds, see `launchers.scripts`; that the paper's Ditto is that is a guess.
- `corefed_why` and `fedquad_why` are in no paper. Their cells are one setting,
  a row of table 1, and a cell has the runs that decide one question: whether
  CoRe-Fed's lead is the other Ditto (d1), more than uniform weights (d2), the
  baselines' values (d3), or reuse (d7); whether FedRDN's is the scale of its
  inputs (d4); whether k and gamma matter (d6); whether FedQuad's lead is batch
  statistics (q2) or the partition (q3).
- FedQuad: the partition of `_capped` is that of MOON's public code, whose paper
  it follows; it is Dirichlet's, so IID has none. `_momentum_09` is PyTorch's
  default. The paper does not say whether its baselines also minimise
  cross-entropy; its numbers suggest that they do not. Both versions are there.
- FedAKD: CGSV, FedAVE and FedSAC `_script` compute as the public scripts of
  FedAKD's authors do, and not as their own papers, but for what
  `launchers.scripts.fedakd_6bd41ca1` names. `fedakd_global` is scored by the
  global model; the paper does not say which of FedAKD's models is. In cells
  `_shared` clients draw as Algorithm 2 prints it, from one pool.
  `fedakd_protocols` splits, trains and scores as these scripts do, which
  differs between the methods; a leak is there to tell what published numbers
  owe to it. The partition is that of table 1, in `_sorted` the scripts' (slices
  of half of the images in the order of their first principal component; there
  of the training file alone). CFFL validates on a tenth that it does not train
  on, its script on a tenth that it does. CGSV is scored by the clients' models,
  its rewards: a reward is the method's point.
"""

import ast
from collections.abc import Collection, Iterable, Mapping
import dataclasses
import pathlib
from typing import Any, NamedTuple

import pandas as pd


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
  """A setting in which methods of a table run.

  Attributes:
    preset: Its preset.
    data: The task whose data the paper used, even if the preset has others.
    methods: The table's methods that run in it; None for all.
    flags: Flags that override the preset; those of a method override these.
    published_as: The cell whose published numbers those of this one are held
      against; None for its own.
    method_flags: Method -> flags of it in this cell, which override those of
      the table.
  """

  preset: str
  data: str
  methods: tuple[str, ...] | None = None
  flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  published_as: str | None = None
  method_flags: Mapping[str, Mapping[str, Any]] = dataclasses.field(
    default_factory=dict
  )


class Reference(NamedTuple):
  """A run that runs of a table are compared with.

  Attributes:
    preset: Its preset; None for that of the cell.
    flags: Its flags; None for those of the compared method.
  """

  preset: str | None = None
  flags: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
  """A published table, or numbers that a paper shows as a figure.

  Attributes:
    title: Its paper, number and content.
    cells: Name -> setting.
    methods: Name -> flags, which override the cell's preset.
    printed_as: Name -> the paper's name, for methods that it names differently.
    published_as: The tables whose published numbers those of this one are held
      against; none for its own.
    metrics: Names in `table_metrics.METRICS`.
    references: Name -> a run that a metric or a plot compares with.
    figures: Name in `table_plots.FIGURES` -> the methods to draw.
    percent: Whether the paper prints shares, such as accuracies, in per cent.
    seeds: Number of seeds that the paper averages over; None if unknown.
  """

  title: str
  cells: Mapping[str, Cell]
  methods: Mapping[str, Mapping[str, Any]]
  printed_as: Mapping[str, str] = dataclasses.field(default_factory=dict)
  published_as: tuple[str, ...] = ()
  metrics: tuple[str, ...]
  references: Mapping[str, Reference] = dataclasses.field(default_factory=dict)
  figures: Mapping[str, tuple[str, ...]] = dataclasses.field(
    default_factory=dict
  )
  percent: bool
  seeds: int | None = None

  def methods_of(self, cell: str) -> tuple[str, ...]:
    """The methods that run in a cell."""
    own = self.cells[cell].methods
    return tuple(self.methods) if own is None else own

  def flags_of(self, cell: str, method: str) -> dict[str, Any]:
    """The flags of a method in a cell, without those of the cell itself."""
    own = self.cells[cell].method_flags.get(method, {})
    return {**self.methods[method], **own}

  def restricted_to(self, methods: Collection[str]) -> 'Table':
    """The table with the runs and the plots of these methods only."""

    def wanted(names):
      return tuple(name for name in names if name in methods)

    return dataclasses.replace(
      self,
      cells={
        name: dataclasses.replace(cell, methods=wanted(self.methods_of(name)))
        for name, cell in self.cells.items()
      },
      figures={name: wanted(drawn) for name, drawn in self.figures.items()},
    )


def _read(name: str) -> list[Any]:
  path = pathlib.Path(__file__).with_name(f'{name}.csv')
  frame = pd.read_csv(path, dtype=str, keep_default_na=False)
  return [*frame.itertuples(index=False)]


def _flags(words: Iterable[str]) -> dict[str, Any]:
  """Flags from words such as `rounds=20`."""
  return {
    name: _value(text) for name, _, text in (w.partition('=') for w in words)
  }


def _value(word: str) -> Any:
  try:
    return ast.literal_eval(word)
  except (SyntaxError, ValueError):
    return word


def _cell(row, methods) -> Cell:
  by_data = {
    m.method: _flags(
      word.removeprefix(f'{row.data}:')
      for word in m.flags_by_data.split()
      if word.startswith(f'{row.data}:')
    )
    for m in methods
  }
  return Cell(
    preset=row.preset,
    data=row.data,
    methods=tuple(row.methods.split()) or None,
    flags=_flags(row.flags.split()),
    published_as=row.published_as or None,
    method_flags={name: flags for name, flags in by_data.items() if flags},
  )


def _table(row, cells, methods) -> Table:
  flags = {m.method: _flags(m.flags.split()) for m in methods}
  references = {}
  for word in row.references.split():
    name, _, preset = word.partition('@')
    own = flags.get(name, {'algorithm': name})
    references[name] = Reference(preset) if preset else Reference(flags=own)
  figures = (part.split(': ') for part in row.figures.split('; ') if part)
  return Table(
    title=row.title,
    cells={cell.cell: _cell(cell, methods) for cell in cells},
    methods=flags,
    printed_as={m.method: m.printed_as for m in methods if m.printed_as},
    published_as=tuple(row.published_as.split()),
    metrics=tuple(row.metrics.split()),
    references=references,
    figures={name: tuple(drawn.split()) for name, drawn in figures},
    percent=row.percent == 'yes',
    seeds=int(row.seeds) if row.seeds else None,
  )


def _read_tables() -> dict[str, Table]:
  cells, methods = _read('cells'), _read('methods')
  return {
    table.table: _table(
      table,
      *(
        [row for row in rows if table.table in row.tables.split()]
        for rows in (cells, methods)
      ),
    )
    for table in _read('tables')
  }


STAND_INS = {'fmnist': 'mnist'}
"""Data -> replacement with the same size and number of images."""

TABLES: dict[str, Table] = _read_tables()
