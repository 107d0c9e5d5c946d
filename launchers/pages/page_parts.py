"""Fills the template of a page.

Nothing here imports TensorFlow.
"""

import pathlib
from typing import Any

import jinja2


def render(template: str, mark: str, **values: Any) -> str:
  """Fills a template, always with the same text for the same values.

  Args:
    template: The name of a file of this folder.
    mark: The start of the page, which says what wrote it.
    **values: What the template names.

  Returns:
    The text of an HTML file.
  """
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent),
    # Names and values come from files, which are not trusted.
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
  )
  body = environment.get_template(template).render(**values)
  return f'{mark}{body}\n'
