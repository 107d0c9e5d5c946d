"""The figures of the page about a comparison, and their legends.

Nothing here imports TensorFlow.
"""

from collections.abc import Iterable

from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import measures
from tff_fair.launchers.pages import report_keys
from tff_fair.launchers.pages import report_svg
from tff_fair.launchers.plots import compare_plots

# Of labels in figures, and the height of the square ones in inches.
_FONT_SIZE, _SQUARE = 9, 4.1


def fronts(
  analysis: analysis_lib.Analysis,
) -> dict[str, list[report_svg.Figure]]:
  """Two measures of all methods, with their Pareto front.

  Args:
    analysis: The comparison.

  Returns:
    Column of the vertical measure -> its figure; none if no method has both.
  """
  return {
    columns[1]: [_front(analysis, columns)]
    if compare_plots.methods_with(analysis, columns)
    else []
    for columns in compare_plots.FRONTS
  }


def curves(analysis: analysis_lib.Analysis) -> list[report_svg.Figure]:
  """The learning curves of some methods.

  Args:
    analysis: The comparison.

  Returns:
    One figure; none without curves.
  """
  methods = compare_plots.curve_methods(analysis)
  if not methods:
    return []
  ends = [
    f'{compare_plots.title(method)}: {analysis.curve(method).mean[-1]:.3f}'
    for method in methods
  ]
  return [
    report_svg.draw_figure(
      'curves',
      'Mean accuracy of the clients over the rounds',
      _curve_note(analysis, methods),
      f'at the end. {"; ".join(ends)}',
      lambda axes: compare_plots.draw_curves(axes, analysis, methods),
    )
  ]


def legend(
  analysis: analysis_lib.Analysis, methods: Iterable[str]
) -> list[report_keys.Key]:
  """The legend of methods.

  Args:
    analysis: The comparison.
    methods: The methods.

  Returns:
    A key per method.
  """
  styles = compare_plots.styles(analysis)
  return [
    report_keys.of_style(compare_plots.title(m), styles[m]) for m in methods
  ]


def _front(analysis, columns) -> report_svg.Figure:
  across, up = (measures.BY_COLUMN[column] for column in columns)
  front = analysis.front(*columns)
  shown = compare_plots.methods_with(analysis, columns)
  told = [_point(analysis, method, columns) for method in front]
  others = [
    _point(analysis, method, columns) for method in shown if method not in front
  ]

  def draw(axes):
    compare_plots.draw_front(axes, analysis, columns)
    compare_plots.label_front(axes, analysis, columns, _FONT_SIZE)

  return report_svg.draw_figure(
    f'front-{up.column.replace("_", "-")}',
    f'{across.title} and {up.short}',
    _front_note(analysis, columns),
    f'of the methods. On the Pareto front: {"; ".join(told)}. Not on it:'
    f' {"; ".join(others) or "none"}',
    draw,
    height=_SQUARE,
  )


def _front_note(analysis, columns) -> str:
  note = (
    'Filled markers on the line: no other method is as good in both and better'
    ' in one (the Pareto front).'
  )
  if len(analysis.facts['seeds']) > 1:
    note += (
      ' Thin crosses: 95 % intervals over the seeds; long ones are cut off.'
    )
  if analysis.in_turn:
    note += f' {compare_plots.IN_TURN}'
  shown = compare_plots.methods_with(analysis, columns)
  absent = [compare_plots.title(m) for m in analysis.methods if m not in shown]
  if absent:
    note += f' Not defined for {", ".join(absent)}.'
  far = [
    _point(analysis, method, columns)
    for method in compare_plots.outside(analysis, columns)
  ]
  if far:
    note += f' Far below, outside the picture: {"; ".join(far)}.'
  return note


def _point(analysis, method, columns) -> str:
  values = [
    f'{analysis.estimates[method, column].mean:.3g}' for column in columns
  ]
  return f'{compare_plots.title(method)} {", ".join(values)}'


def _curve_note(analysis, methods) -> str:
  seeds = len(analysis.facts['seeds'])
  notes = []
  if seeds > 1:
    notes.append(f'Mean over {seeds} seeds; the band is its 95 % interval.')
  absent = len(analysis.methods) - len(methods)
  if absent:
    notes.append(
      f'{absent} of {len(analysis.methods)} methods are not drawn: the picture'
      ' has the baseline, Standalone, the best ones and the papers’ methods, at'
      f' most {compare_plots.MAX_CURVES}.'
    )
  return ' '.join(notes)
