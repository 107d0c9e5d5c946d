"""What the launchers' pictures share: reading of files, colours, axes."""

from collections.abc import Iterable
import io
import pathlib

import matplotlib
from matplotlib import axes as mpl_axes
from matplotlib import ticker
import pandas as pd

DPI = 150

# Distinguishable with every common kind of colour blindness.
COLORS = matplotlib.color_sequences['petroff10']
# Tell runs apart where there are more of them than colours.
_LINE_STYLES = ('-', '--', ':', '-.')
# Longer curves are clearer without a marker at each round.
_MAX_MARKERS = 30


def read(path: pathlib.Path, columns: list[str]) -> pd.DataFrame:
  """Reads the columns of a csv file, all as numbers.

  Args:
    path: A file of a run directory.
    columns: The columns to read.

  Returns:
    The columns, in this order.

  Raises:
    FileNotFoundError: If there is no such file.
    ValueError: If it is not as `launchers.train` writes it.
  """
  return _numbers(_load(path, columns)[columns], path)


def read_whole(
  path: pathlib.Path, columns: list[str], *, growing: bool = False
) -> pd.DataFrame:
  """Reads all columns of a csv file, all as numbers.

  Args:
    path: A file of a run directory.
    columns: Columns that it must have.
    growing: Whether a run is writing it: a last row without its end is left
      out.

  Returns:
    All its columns.

  Raises:
    FileNotFoundError: If there is no such file.
    ValueError: If it is not as `launchers.train` writes it.
  """
  return _numbers(_load(path, columns, growing=growing), path)


def has_columns(path: pathlib.Path, columns: Iterable[str]) -> bool:
  """Whether a csv file, which exists, has all of these columns."""
  return set(columns) <= set(pd.read_csv(path, nrows=0))


def marker(num_points: int) -> str | None:
  """The marker of a curve: none where there are too many points."""
  return 'o' if num_points <= _MAX_MARKERS else None


def round_locator() -> ticker.Locator:
  """Round numbers of rounds, and one tick where there is one round."""
  return ticker.MaxNLocator(
    nbins=6, steps=[1, 2, 5, 10], integer=True, min_n_ticks=1
  )


def style(index: int) -> dict[str, str]:
  """Colour and line style of the run, or client, of that index."""
  turn, color = divmod(index, len(COLORS))
  line_style = _LINE_STYLES[turn % len(_LINE_STYLES)]
  return {'color': COLORS[color], 'linestyle': line_style}


def tidy(axes: mpl_axes.Axes) -> None:
  """Gives axes a faint grid, and no frame where there is no scale."""
  axes.grid(alpha=0.3)
  axes.set_axisbelow(True)
  axes.spines[['top', 'right']].set_visible(False)


def listing(values: Iterable[object]) -> str:
  """The values, separated by commas."""
  return ', '.join(str(value) for value in values)


def _load(
  path: pathlib.Path, columns: list[str], *, growing: bool = False
) -> pd.DataFrame:
  if not path.is_file():
    raise FileNotFoundError(
      f'A run directory must hold {path.name}, found no file {path}.'
    )
  try:
    text = path.read_text()
    if growing:
      text = text[: text.rfind('\n') + 1]
    frame = pd.read_csv(io.StringIO(text))
  except ValueError as error:  # Also what pandas raises on a broken csv.
    raise ValueError(
      f'{path.name} must be a csv file, found in {path}: {_one_line(error)}.'
    ) from error
  missing = [column for column in columns if column not in frame]
  if missing or frame.empty:
    raise ValueError(
      f'{path.name} must have the columns {listing(columns)} and a row,'
      f' found {len(frame)} rows of {listing(frame.columns)} in {path}.'
    )
  return frame


def _numbers(frame: pd.DataFrame, path: pathlib.Path) -> pd.DataFrame:
  try:
    return frame.apply(pd.to_numeric)
  except ValueError as error:
    raise ValueError(
      f'{path.name} must hold numbers in {listing(frame.columns)}, found in'
      f' {path}: {_one_line(error)}.'
    ) from error


def _one_line(error: Exception) -> str:
  return ' '.join(str(error).split()).rstrip('.')
