"""Finds columns of a table that may mean something else than was read."""

from collections.abc import Sequence
import re

import numpy as np
import pandas as pd

# More whole numbers are seldom names of classes.
_MAX_NUMBERS = 20
_NUMBER = r'[+-]?\d+(?:\.\d+)?'
# What texts look like, and the words for it; the first one that fits.
_LOOKS = tuple(
  (re.compile(pattern), words)
  for pattern, words in (
    (_NUMBER, 'numbers'),
    (r'[+-]?\d+(?:,\d+)+', 'numbers with a comma'),
    (
      r"[+-]?\d{1,3}(?:[ .'’\u00a0\u202f]\d{3})+(?:,\d+)?",
      'numbers with marks for thousands',
    ),
    (rf'{_NUMBER}(?:,\d+)?\s*%', 'percentages'),
    (rf'[$€£¥]\s*{_NUMBER}(?:,\d+)*|{_NUMBER}(?:,\d+)*\s*[$€£¥]', 'prices'),
    (rf'[<>≤≥~]\s*=?\s*{_NUMBER}', 'bounds of numbers'),
    (rf'{_NUMBER}\s*(?:[a-zA-Zµ°][a-zA-Z/%²³]{{0,5}})', 'numbers with a unit'),
  )
)
_MONTHS = 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec'
_DATES = re.compile(
  r'\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T].*)?'
  r'|\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[ap]\.?m\.?)?'
  rf'|(?:\d{{1,2}}[ .-]+)?(?:{_MONTHS})[a-z]*[ .-]+\d{{1,4}}(?:,? \d{{4}})?',
  re.IGNORECASE,
)
_FLAGS = frozenset({'true', 'false'})
_MOST_READ = 100


def holds_dates(column: pd.Series) -> bool:
  """Returns whether a column's first texts all look like dates or times."""
  texts = _distinct(column)
  return bool(texts) and all(map(_DATES.fullmatch, texts))


def of_texts(what: str, column: pd.Series) -> list[str]:
  """Sentences about texts that may be numbers, which count as categories.

  At least half of the first distinct texts must look alike.

  Args:
    what: The column, in messages.
    column: Texts; some may be missing.
  """
  texts = _distinct(column)
  is_flag = [text.lower() in _FLAGS for text in texts]
  is_number = [re.fullmatch(_NUMBER, text) is not None for text in texts]
  if any(is_flag) and any(is_number):
    return [
      f'{what} mixes {texts[is_flag.index(True)]!r} with numbers such as'
      f' {texts[is_number.index(True)]!r}, and counts as categories.'
    ]
  for pattern, words in _LOOKS:
    found = [text for text in texts if pattern.fullmatch(text)]
    if words.endswith('unit') and len({_unit(text) for text in found}) > 1:
      continue  # As '1a' and '1b'.
    if texts and 2 * len(found) >= len(texts):
      return [
        f'{what} has texts that look like {words}, such as {found[0]!r}, and'
        ' counts as categories: to use them as numbers, write them with digits'
        ' and a decimal point only.'
      ]
  return []


def of_labels(what: str, class_names: Sequence[str]) -> list[str]:
  """A sentence about classes that may be a quantity."""
  count = len(class_names)
  if count <= _MAX_NUMBERS or not all(
    re.fullmatch(r'-?\d+', name) for name in class_names
  ):
    return []
  return [
    f'{what} holds {count} whole numbers, from {class_names[0]} to'
    f' {class_names[-1]}, which count as classes without an order: if it is a'
    ' quantity, pandas.cut makes classes of it.'
  ]


def of_copies(
  what: str, column: pd.Series, y: np.ndarray, features: str
) -> list[str]:
  """A sentence about a feature with a value of its own for each class.

  Args:
    what: The column of the feature, in messages.
    column: The feature.
    y: The class of each row.
    features: The argument that names the features, in messages.
  """
  codes, values = pd.factorize(column, use_na_sentinel=False)
  count = len(np.unique(y))
  if len(values) != count:
    return []
  if len(np.unique(np.stack([codes, y]), axis=1).T) > count:
    return []
  return [
    f'{what} says the class of each row: if it is a copy of the label, leave it'
    f' out of {features}.'
  ]


def _distinct(column: pd.Series) -> list[str]:
  """The first distinct texts, without blanks at their ends."""
  known = column.dropna().drop_duplicates().head(_MOST_READ)
  return [str(value).strip() for value in known]


def _unit(text: str) -> str:
  return re.sub(rf'^{_NUMBER}\s*', '', text)
