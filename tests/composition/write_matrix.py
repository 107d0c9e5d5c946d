"""Writes the composition matrix into docs/composing.md.

python -m tests.composition.write_matrix
"""

import pathlib

from tests.composition import compositions
from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown

PAGE = pathlib.Path(__file__).parents[2] / 'docs' / 'composing.md'


def render(page: str) -> str:
  """The page, or another one, with its matrix as it should be."""
  name = 'composition matrix'
  return blocks.replace(page, name, f'end of {name}', lambda match: _text())


def main() -> None:
  """Writes it."""
  PAGE.write_text(render(PAGE.read_text()))


def _text():
  """The matrix, the meaning of its heads, and the notes."""
  heads = ['', *compositions.COLUMNS]
  table = markdown.table(heads, map(_cells, compositions.ROWS), rule=':-:')
  number = sum(len(compositions.composed(c)) for c in compositions.COLUMNS)
  *names, last = [f'`{f.__name__}`' for f in compositions.ON_NATIVE]
  notes = [f'{number}. {text}' for text, number in _numbers().items()]
  return '\n'.join(
    [
      f'{number} compositions of a factory of ours with one of TFF run two'
      ' rounds each; those of'
      f' {", ".join(names)} and {last} also on the runtime `native`, with the'
      ' same results. A number without a mark refers to the reason why two do'
      ' not compose.',
      '',
      table,
      '',
      *notes,
      '',
      f'- Around ours, of `tff.aggregators`: {_names(compositions.WRAPPERS)}.',
      f'- As the sums inside ours: {_names(compositions.SUMS)}. The runtimes'
      ' simulate secure sums by plain ones.',
      '- With ours as `model_aggregator`, of `tff.learning.algorithms`:'
      f' {_names(compositions.BUILDERS)}. In TFF 0.87.0 the proximal term of'
      ' the second has the wrong sign; that of our `build_fed_prox` is right.',
      '',
      '`tests/composition/matrix_test.py` runs them and checks that each has'
      ' its effect; `python -m tests.composition.write_matrix` updates this'
      ' section.',
    ]
  )


def _names(columns):
  return ', '.join(f'`{name}`' for name in columns.values())


def _cells(row):
  """The name of a factory, then a mark or the number of a note, or both."""
  numbers = _numbers()

  def cell(column):
    if column in row.reasons:
      return f'{numbers[row.reasons[column]]}'
    if column in row.remarks:
      return f'✓ <sup>{numbers[row.remarks[column]]}</sup>'
    return '✓'

  return [f'`{row.factory.__name__}`', *map(cell, compositions.COLUMNS)]


def _numbers():
  """Note -> its number."""
  notes = (*compositions.REASONS, *compositions.REMARKS)
  return {text: number for number, text in enumerate(notes, 1)}


if __name__ == '__main__':
  main()
