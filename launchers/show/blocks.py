"""The written parts of pages, each between two comments."""

from collections.abc import Callable
import re


def replace(
  page: str, start: str, end: str, write: Callable[[re.Match[str]], str]
) -> str:
  """Replaces what stands between comments.

  Args:
    page: The page's text.
    start: A pattern for the text of the comment before a block.
    end: A pattern for the text of the comment behind it, which may refer to
      named groups of `start`.
    write: From a match, with the named groups, to the block's text.

  Returns:
    The page with all blocks replaced; the comments stay.
  """

  def written(match):
    return f'{match["_start"]}{write(match)}\n{match["_end"]}'

  pattern = rf'(?P<_start><!-- {start} -->\n).*?(?P<_end><!-- {end} -->)'
  return re.sub(pattern, written, page, flags=re.DOTALL)
