"""Equations as MathML: browsers show it without a script or a font."""

from typing import Any

from latex2mathml import converter


def format_math(
  source: str, language: str, css_class: str, *_: Any, **__: Any
) -> str:
  """A fence `math` as HTML, as `pymdownx.superfences` asks for it.

  Args:
    source: LaTeX of the equation.
    language: Unused.
    css_class: Class of the box around the equation.

  Returns:
    The equation in a box of its own.
  """
  del language
  equation = converter.convert(source.strip(), display='block')
  return f'<div class="{css_class}">{equation}</div>'
