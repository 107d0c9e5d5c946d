"""Executes the notebooks of examples/, and keeps their outputs in them.

python -m tests.write_notebooks
"""

import pathlib

import nbclient
import nbformat

FOLDER = pathlib.Path(__file__).parents[1] / 'examples'
# Notebooks are executed in clones and installations, by any Python.
_METADATA = {
  'kernelspec': {
    'display_name': 'Python 3',
    'language': 'python',
    'name': 'python3',
  },
  'language_info': {'name': 'python'},
}


def execute(path: pathlib.Path) -> nbformat.NotebookNode:
  """Executes a notebook in a kernel of its own; the file is only read.

  Returns:
    The notebook with its outputs, without times and versions.

  Raises:
    nbclient.exceptions.CellExecutionError: If a cell fails.
  """
  notebook = nbformat.read(path, as_version=4)
  nbclient.NotebookClient(
    notebook,
    timeout=300,
    kernel_name='python3',
    record_timing=False,
    coalesce_streams=True,
    resources={'metadata': {'path': path.parent}},
  ).execute()
  notebook.metadata = _METADATA
  return notebook


if __name__ == '__main__':
  for name in sorted(FOLDER.glob('*.ipynb')):
    nbformat.write(execute(name), name)
