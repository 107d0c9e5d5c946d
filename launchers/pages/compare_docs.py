"""The numbers and pictures of our comparisons in the pages.

The comparisons are `results/compare_NAME.csv` with the `.json` beside it, and
`results/fine_tuned_NAME.csv` has the baseline again, whose clients train the
global model further before they are scored. A block of a page stands between
`<!-- compare KIND of NAME -->`, or, of all comparisons,
`<!-- compare overview -->`, `<!-- compare fine_tuned -->`,
`<!-- compare findings -->`, `<!-- compare across -->` and
`<!-- compare halves -->`, and `<!-- end -->`; what is between them is replaced.
Pictures go to docs/images.
"""

import collections
from collections.abc import Mapping
import pathlib
from typing import NamedTuple

import numpy as np
import pandas as pd

from tff_fair.launchers import measures
from tff_fair.launchers import statistics
from tff_fair.launchers.comparison import across
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.comparison import reading
from tff_fair.launchers.execution import options
from tff_fair.launchers.options import methods as methods_lib
from tff_fair.launchers.pages import compare_page
from tff_fair.launchers.pages import tables
from tff_fair.launchers.pages import text
from tff_fair.launchers.plots import compare_plots
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown
from tff_fair.launchers.show import numbers
from tff_fair.launchers.show import words

_START = r'compare (?P<kind>\w+)(?: of (?P<name>\w+))?'
_END = 'end'
_PREFIX, _FINE_TUNED = 'compare_', 'fine_tuned_'
_MEAN, _WORST10 = 'client_accuracy_mean', 'client_accuracy_worst10'
# Measure -> the same after fine-tuning.
_AFTER_TUNING = {
  _MEAN: 'fine_tuned_accuracy_mean',
  _WORST10: 'fine_tuned_accuracy_worst10',
  'cf': 'fine_tuned_cf',
}
_MEASURES = {
  _MEAN: 'mean accuracy',
  _WORST10: 'worst 10 % of clients',
  'cf': 'CF coefficient',
}
_BESIDE_CF = ', with share better off than alone and mean gain'
_OVERVIEW = [
  (kind, column)
  for kind in (methods_lib.ONE_MODEL, methods_lib.OWN_MODELS)
  for column in _MEASURES
  if analysis_lib.is_merit(kind, column)
]
_OVERVIEW_HEADER = [
  'data',
  *(f'{kind}: {_MEASURES[column]}' for kind, column in _OVERVIEW),
]


class Result(NamedTuple):
  """A committed comparison: its runs, and what they say.

  `fine_tuned` has the values of `_MEASURES` of the baseline after fine-tuning,
  `float64[seeds]`; none without such runs.
  """

  frame: pd.DataFrame
  analysis: analysis_lib.Analysis
  fine_tuned: Mapping[str, np.ndarray] = {}


def read_results(folder: pathlib.Path) -> dict[str, Result]:
  """Reads and analyses the comparisons of the folder `results`, by name.

  Raises `ComparisonError` if a file is damaged.
  """
  found = {}
  for path in sorted(folder.glob(f'{_PREFIX}*.csv')):
    frame, facts = reading.read(path, path.with_suffix('.json'))
    name = path.stem.removeprefix(_PREFIX)
    analysis = analysis_lib.analyse(frame, facts)
    tuned = _read_fine_tuned(folder / f'{_FINE_TUNED}{name}.csv', facts)
    found[name] = Result(frame, analysis, tuned)
  return found


def _read_fine_tuned(path, facts) -> dict[str, np.ndarray]:
  """The baseline's measures after fine-tuning, by the seeds."""
  if not path.exists():
    return {}
  frame, own_facts = reading.read(path, path.with_suffix('.json'))
  runs = client_scores.rescored(reading.results(frame), own_facts)
  of_baseline = runs[runs['method'] == facts['baseline']].set_index('seed')
  found = of_baseline.loc[facts['seeds'], [*_AFTER_TUNING.values()]]
  return {
    column: found[tuned].to_numpy(float)
    for column, tuned in _AFTER_TUNING.items()
    if found[tuned].notna().all()
  }


def render(page: str, results: Mapping[str, Result]) -> str:
  """Renders a page with its blocks as the comparisons say.

  Raises `ComparisonError` if a block is of a comparison that is not there.
  """

  def write(match):
    kind, name = match['kind'], match['name']
    if kind in _OF_ALL:
      return _OF_ALL[kind](results)
    if name not in results:
      raise reading.ComparisonError(
        f'results/{_PREFIX}{name}.csv must exist for the blocks of {name},'
        ' found no such file.'
      )
    return _BLOCKS[kind](results[name])

  return blocks.replace(page, _START, _END, write)


def _overview(results) -> str:
  """Names the highest method of each measure, with the baseline next to it."""
  header = [*_OVERVIEW_HEADER]
  header[-1] += _BESIDE_CF
  rows = [
    [
      f'{label}, {results[name].analysis.facts["num_clients"]} clients',
      *(_best(results[name].analysis.of(kind), c) for kind, c in _OVERVIEW),
    ]
    for name, label in _labels(results).items()
  ]
  return markdown.table(header, rows)


def _fine_tuned(results) -> str:
  """Compares models for each client with the fine-tuned baseline."""
  kind, baseline = methods_lib.OWN_MODELS, _baseline(results)
  header = [
    'data',
    'measure',
    baseline,
    f'{baseline}, fine-tuned',
    f'highest with {kind}',
    f'its lead over {baseline}, fine-tuned',
    f'separably above {baseline}, fine-tuned',
    'separably below it',
  ]
  rows = [
    [label, title, *_against_fine_tuned(results[name], column)]
    for column, title in _MEASURES.items()
    for name, label in _labels(results).items()
    if column in results[name].fine_tuned
  ]
  return markdown.table(header, rows)


def _against_fine_tuned(result, column) -> list[str]:
  """The cells of a row: means, the highest method's lead, who differs."""
  analysis = result.analysis.of(methods_lib.OWN_MODELS)
  tuned = result.fine_tuned[column]
  values = {
    m: np.array(analysis.estimates[m, column].values) for m in analysis.ranked
  }
  p_values = statistics.holm(
    {
      m: statistics.p_value(analysis_lib.leads(column, of_method, tuned))
      for m, of_method in values.items()
    }
  )
  leads = {
    m: analysis_lib.difference(column, of_method, tuned)
    for m, of_method in values.items()
  }
  separable = [
    _join(
      [
        analysis.title(m)
        for m, p in p_values.items()
        if p < analysis_lib.LEVEL and sign * leads[m].mean > 0
      ]
    )
    for sign in (1, -1)
  ]
  best = analysis.best(column)
  lead, digits = leads[best], measures.MEASURES[column].digits
  return [
    analysis.show(analysis.baseline, column),
    analysis.format(column, np.mean(tuned)),
    f'{analysis.title(best)} {analysis.show(best, column)}',
    numbers.format_interval(lead.mean, lead.low, lead.high, f'.{digits}f'),
    *separable,
  ]


def _findings(results) -> str:
  """Names the methods separably better than the baseline."""
  marked = {column: _better(results, column) for column in _MEASURES}
  # Clients are served as if alone by methods that are little better than that.
  worse, converged = {}, {}
  for name, (_, analysis, _) in results.items():
    worse[name] = [
      m for m in marked['cf'][name] if analysis.verdict(m, _MEAN) < 0
    ]
    named = [m for better in marked.values() for m in better[name]]
    converged[name] = [m for m in dict.fromkeys(named) if analysis.is_flat(m)]
  of_whom = {'cf': f', of {methods_lib.OWN_MODELS}'}
  lines = [
    f'In {title}{of_whom.get(column, "")}: {_on_data(results, marked[column])}.'
    for column, title in _MEASURES.items()
  ]
  lines += [
    f'Better in CF, but worse in mean accuracy: {_on_data(results, worse)}.',
    f'Converged of all that are named: {_on_data(results, converged)}.',
  ]
  return (
    'By a paired test over the seeds, corrected for the number of methods,'
    f' better than {_baseline(results)} on'
    f' {words.join_words([*_labels(results).values()])}:'
    f'\n\n{markdown.bullets(lines)}'
  )


def _labels(results) -> dict[str, str]:
  """Comparison -> its data and, where these are not enough, its partition.

  Where both are those of another comparison, it has its own name.
  """
  labels = {
    name: (_data(result), f'{_data(result)} ({_partition(result)})', name)
    for name, result in results.items()
  }
  used = collections.Counter(x for of in labels.values() for x in {*of})
  return {
    name: next((label for label in of if used[label] == 1), name)
    for name, of in labels.items()
  }


def _data(result) -> str:
  return pathlib.PurePath(result.analysis.facts['data']).stem


def _partition(result) -> str:
  """How the clients of a comparison were made, in a few words."""
  chosen = result.analysis.facts['options']
  if 'partition' in chosen:
    return chosen['partition'].replace('_', ' ')
  if 'dirichlet_alpha' in chosen:
    return f'Dirichlet {chosen["dirichlet_alpha"]:g}'
  return 'as the task deals it'


def _better(results, column) -> dict[str, list[str]]:
  """Comparison -> the methods that are separably better in a measure."""
  return {
    name: [
      method
      for kind in analysis.kinds
      if analysis_lib.is_merit(kind, column)
      for method in analysis.of(kind).separable(column)
    ]
    for name, (_, analysis, _) in results.items()
  }


def _on_data(results, methods) -> str:
  """Names methods of several comparisons."""
  labels = _labels(results)
  found = []
  for name, of_data in methods.items():
    if of_data:
      titles = [results[name].analysis.title(method) for method in of_data]
      found.append(f'{words.join_words(titles)} on {labels[name]}')
  return '; '.join(found) or 'no method'


def _across(results) -> str:
  """Names the methods separable from the baseline over all data sets."""
  analyses = {name: result.analysis for name, result in results.items()}
  kept = across.with_enough_seeds(analyses)
  counts = {name: len(a.facts['seeds']) for name, a in kept.items()}
  labels = _labels(results)
  data = words.join_words(
    [f'{labels[name]} with {n} seeds' for name, n in counts.items()]
  )
  lines = [f'{sum(counts.values())} pairs of a data set and a seed: {data}.']
  lines += [
    f'{labels[name]} has fewer than {across.FEWEST_SEEDS} seeds, and is left'
    ' out.'
    for name in analyses
    if name not in kept
  ]
  for column, title in _MEASURES.items():
    found = across.compare([*kept.values()], column)
    better, worse = (_on_side(found, s, kept, column) for s in (1, -1))
    lines.append(
      f'{title[0].upper()}{title[1:]}, {len(found)} methods. Better than'
      f' {_baseline(results)}: {better}. Worse: {worse}.'
    )
  return markdown.bullets(lines)


def _halves(results) -> str:
  """Says how alike two halves of the seeds rank the methods."""
  rows = [
    [
      label,
      *(
        f'{results[name].analysis.of(kind).agreement(c):.2f}'
        for kind, c in _OVERVIEW
      ),
    ]
    for name, label in _labels(results).items()
  ]
  return markdown.table(_OVERVIEW_HEADER, rows)


def _on_side(found, sign, analyses, column) -> str:
  """The methods with a verdict, and their medians on each of the data."""
  analysis = next(iter(analyses.values()))
  told = []
  for method, difference in sorted(
    found.items(), key=lambda item: -sign * sum(item[1].medians)
  ):
    if difference.verdict == sign:
      shown = [analysis.format(column, m) for m in difference.medians]
      told.append(f'{analysis.title(method)} ({", ".join(shown)})')
  return _join(told)


def _join(titles) -> str:
  return words.join_words(titles) if titles else 'none'


def _baseline(results) -> str:
  """The name of the method that all comparisons compare with."""
  (title,) = {r.analysis.title(r.analysis.baseline) for r in results.values()}
  return title


def _best(analysis, column) -> str:
  """The method of a kind with the highest number, and the baseline's."""
  best, baseline = analysis.best(column), analysis.baseline
  mark = tables.MARKS[analysis.verdict(best, column)]
  value = f'{analysis.show(best, column)} {mark}'.strip()
  told = f'**{analysis.title(best)}** {value}{_share(analysis, best, column)}'
  usual = analysis.show(baseline, column)
  usual = (
    f'{analysis.title(baseline)} {usual}{_share(analysis, baseline, column)}'
  )
  if column == _WORST10 and analysis.near_chance(best):
    told += ', as by chance'
  return told if best == baseline else f'{told} ({usual})'


def _share(analysis, method, column) -> str:
  """The share of better-off clients and the gain, beside a CF coefficient."""
  if column != 'cf':
    return ''
  shown = [analysis.show(method, c) for c in ('better_off', 'gain_mean')]
  return f', {", ".join(shown)}'


def _cost(result) -> str:
  """How many runs it was, and how long they took."""
  frame, facts = result.frame, result.analysis.facts
  seconds = (frame['seconds_per_round'] * frame['rounds']).sum()
  trials = f'{facts["tune"]} trials' if facts['tune'] else 'no trials'
  most = 'up to ' if facts.get('tuning') else ''  # Short trials.
  return (
    f'{len(frame)} runs of {most}{facts["rounds"]} rounds: {trials} and'
    f' {len(facts["seeds"])} seeds of {frame["method"].nunique()} methods.'
    f' Their rounds take {options.in_words(seconds)} of one core.'
  )


def write_pictures(results: Mapping[str, Result], folder: pathlib.Path) -> None:
  """Draws the pictures of the pages into the folder of images."""
  for name, result in results.items():
    figure = compare_plots.draw_fronts(result.analysis)
    plot_parts.save(figure, folder / f'{_PREFIX}{name}_pareto.png')


_OF_ALL = {
  'overview': _overview,
  'fine_tuned': _fine_tuned,
  'findings': _findings,
  'across': _across,
  'halves': _halves,
}
_BLOCKS = {
  'answer': lambda result: markdown.bullets(
    text.describe_methods(result.analysis)
  ),
  'table': lambda result: compare_page.render_headline(result.analysis),
  'cost': _cost,
}
