"""Executes the notebooks of examples/, and keeps their outputs in them.

python -m tests.write_notebooks
"""

import os
import pathlib
import sys
import tempfile

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
  """Executes a notebook in a kernel and an empty folder of its own.

  Returns:
    The notebook with its outputs, without times and versions.

  Raises:
    nbclient.exceptions.CellExecutionError: If a cell fails.
  """
  notebook = nbformat.read(path, as_version=4)
  # Where `tff-fair` is, which a shell of the notebook calls.
  programs = os.path.dirname(sys.executable)
  with tempfile.TemporaryDirectory() as folder:
    nbclient.NotebookClient(
      notebook,
      timeout=600,
      kernel_name='python3',
      record_timing=False,
      coalesce_streams=True,
      resources={'metadata': {'path': folder}},
    ).execute(
      env={**os.environ, 'PATH': f'{programs}{os.pathsep}{os.environ["PATH"]}'}
    )
  notebook.metadata = _METADATA
  return notebook


if __name__ == '__main__':
  for name in sorted(FOLDER.glob('*.ipynb')):
    nbformat.write(execute(name), name)
