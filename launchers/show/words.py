"""Lists and counts in words."""

from collections.abc import Sequence


def join_words(texts: Sequence[str]) -> str:
  """Joins a list in words: with commas, the last one with "and".

  Args:
    texts: The parts, at least one.
  """
  *first, last = texts
  return f'{", ".join(first)} and {last}' if first else last


def format_count(number: int, singular: str) -> str:
  """Formats a count with its noun, whose plural has an s.

  Args:
    number: The count.
    singular: The noun.
  """
  return f'{number} {singular}{"" if number == 1 else "s"}'
