"""Equations as MathML: browsers show it without a script or a font."""

import re

from latex2mathml import converter
from pymdownx import superfences

# Names of functions, with a factor before them or a parenthesis behind.
_FUNCTION = re.compile(
  r'(&#x00029;</mo>|</m(?:[inr]|sub|sup|subsup|frac|row)>)?'
  r'<m([io])[^>]*>((?:arg&#x02009;)?(?:max|min)|ln|exp|cos|sinh|tanh)</m\2>'
  r'(?=(<mo[^>]*>&#x00028;)?)'
)
# The space around signs, which depends on more than browsers look at.
_SIGNS = (
  # A minus that subtracts nothing.
  (
    r'(<mo[^>]*>&#x000(?:28|3D|2C);</mo>)<mo>&#x02212;',
    r'\1<mo form="prefix">&#x02212;',
  ),
  # Bars around a set, and a fraction in a line.
  (
    r'<mo[^>]*>&#x000(7C|2F);',
    r'<mo stretchy="false" lspace="0" rspace="0">&#x000\1;',
  ),
  # "Such that" and "proportional to".
  (r'<mi>(:|&#x0007E;)</mi>', r'<mo lspace=".2em" rspace=".2em">\1</mo>'),
  (r'<mi>;</mi>', '<mo lspace="0" rspace=".2em">;</mo>'),
  (r'<mo>&#x0005E;', '<mo stretchy="false">&#x0005E;'),
)


def format_math(source, language, css_class, *_, **__):
  """Returns a fence `math` as HTML, as `pymdownx.superfences` asks for it."""
  equation = converter.convert(_in_its_terms(source.strip()), display='block')
  if '\\' in equation:
    # `pymdownx.superfences` shows the source in place of any other error.
    raise superfences.SuperFencesException(
      f'Commands must be known to latex2mathml, found {source!r}.'
    )
  equation = _FUNCTION.sub(_space_function, equation)
  for sign, spaced in _SIGNS:
    equation = re.sub(sign, spaced, equation)
  return f'<div class="{css_class}">{equation}</div>'


def _in_its_terms(source):
  """Rewrites what the converter would take for something else."""
  source = re.sub(r'\\arg\\(max|min)', r'\\arg\1', source)
  return re.sub(r'\\((?:arg)?(?:max|min))_', r'\\\1\\limits_', source)


def _space_function(match):
  """Sets TeX's space: none before a parenthesis or at a sign."""
  before = '.17em' if match[1] else '0'
  after = '0' if match[4] else '.17em'
  name = f'<mo lspace="{before}" rspace="{after}">{match[3]}</mo>'
  return f'{match[1] or ""}{name}'
