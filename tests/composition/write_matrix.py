"""Writes the composition matrix into the README.

python -m tests.composition.write_matrix
"""

import pathlib

from tests.composition import compositions

_README = pathlib.Path(__file__).parents[2] / 'README.md'
_BEGIN = '<!-- composition matrix -->\n'
_END = '<!-- end of composition matrix -->'


def markdown() -> str:
  """The matrix, the meaning of its heads, and the notes."""
  heads = ['', *compositions.COLUMNS]
  lines = [_line(heads), _line(['---'] + [':-:'] * len(compositions.COLUMNS))]
  lines += [_line(_cells(row)) for row in compositions.ROWS]
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
      *lines,
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
      '',
    ]
  )


def in_readme() -> str:
  """The section of the README."""
  return _parts()[1]


def main() -> None:
  """Writes it."""
  before, _, after = _parts()
  _README.write_text(before + markdown() + after)


def _parts():
  before, rest = _README.read_text().split(_BEGIN)
  matrix, after = rest.split(_END)
  return before + _BEGIN, matrix, _END + after


def _names(columns):
  return ', '.join(f'`{name}`' for name in columns.values())


def _line(cells):
  return f'| {" | ".join(cells)} |'


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
