"""The web page about a comparison of methods.

Nothing here imports TensorFlow.
"""

from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import answer
from tff_fair.launchers.pages import compare_explanations
from tff_fair.launchers.pages import compare_figures
from tff_fair.launchers.pages import compare_tables
from tff_fair.launchers.pages import page_parts
from tff_fair.launchers.plots import compare_plots

MARK = '<!doctype html>\n<!-- Written by launchers.compare. -->\n'
"""The start of a page, so that no other file is overwritten."""

_TEMPLATE = 'compare_template.html'


def render(analysis: analysis_lib.Analysis) -> str:
  """Renders the page, the same for the same comparison.

  Args:
    analysis: The comparison.

  Returns:
    The text of an HTML file, which needs no other file.
  """
  methods = analysis.methods
  groups = [group for group in (analysis.ranked, analysis.in_turn) if group]
  scores = compare_tables.shown(analysis, compare_tables.SCORES)
  return page_parts.render(
    _TEMPLATE,
    MARK,
    facts=analysis.facts,
    baseline=compare_plots.title(analysis.baseline),
    num_methods=len(methods),
    sentences=answer.sentences(analysis),
    fronts=compare_figures.fronts(analysis),
    keys=compare_figures.legend(analysis, methods),
    curves=compare_figures.curves(analysis),
    curve_keys=compare_figures.legend(
      analysis, compare_plots.curve_methods(analysis)
    ),
    tables=compare_tables,
    shown=scores,
    scores=[compare_tables.rows(analysis, scores, group) for group in groups],
    costs=[
      compare_tables.rows(analysis, compare_tables.COSTS, group)
      for group in groups
    ],
    tuned=compare_tables.tuned(analysis),
    left_out=compare_tables.left_out(analysis),
    settings=compare_tables.settings(analysis),
    explanations=compare_explanations.sentences(analysis),
    command=compare_tables.command(analysis),
  )
