"""Trains recorded runs of each paper again, and writes how far off they are.

  python examples/train_again.py runs/again results/again.csv --data_dir=DATA

Draws two runs of each paper that has recorded ones in `results/`, by a fixed
seed, and trains them by their recorded commands. A row of the csv is a number
of such a run: the recorded one and today's, in the paper's unit, with the
versions of the code. The same command goes on where it was interrupted. A paper
of which the csv has rows keeps them: to draw its runs anew, delete these.
"""

import argparse
from collections.abc import Collection
import hashlib
import pathlib
import shlex
import subprocess
import sys

import pandas as pd

from tff_fair.launchers import frame
from tff_fair.launchers.results import again_table
from tff_fair.launchers.results import records
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics
from tff_fair.launchers.tables import table_runs

_RESULTS = pathlib.Path(__file__).parents[1] / 'results'
_RUNS_OF_A_PAPER = 2
_SEED = 0


def draw(recorded: pd.DataFrame, known: Collection[str] = ()) -> pd.DataFrame:
  """Draws runs of each paper from those that `records.read` gives.

  Args:
    recorded: The rows.
    known: Papers that are left out, such as 'cffl'.

  Returns:
    All rows of the drawn runs.
  """
  others = ~_papers(recorded).isin(known)
  rows = recorded[(recorded['source'] == records.RUN) & others]
  runs = rows.drop_duplicates([*again_table.RUN])
  drawn = runs.groupby(_papers(runs)).sample(
    _RUNS_OF_A_PAPER, random_state=_SEED
  )
  return rows.merge(drawn[[*again_table.RUN]])


def train(command: str, folder: pathlib.Path, data_dir: str) -> pathlib.Path:
  """Trains a run by its command unless it is finished; returns its folder."""
  name = hashlib.sha256(command.encode()).hexdigest()[:12]
  if not (folder / name / 'summary.json').is_file():
    flags = [part for part in shlex.split(command) if part.startswith('--')]
    start = [sys.executable, '-m', 'tff_fair.launchers.train', *flags]
    places = [f'--output_dir={folder / name}', f'--data_dir={data_dir}']
    done = subprocess.run([*start, *places], check=False)
    if done.returncode:  # It has said why.
      sys.exit(done.returncode)
  return folder / name


def compare(row: pd.Series, folders: list[pathlib.Path]) -> dict[str, object]:
  """The recorded number of a row and that of its runs, the references first."""
  percent = definitions.TABLES[row['table']].percent
  metric = table_metrics.METRICS[row['metric']]
  return {
    **row[[*again_table.RUN, 'metric']],
    'recorded': row['value'],
    'again': metric.compute(folders[::-1], percent),
    'recorded_by': row['version'],
    'again_by': frame.read_run(folders[-1]).version,
  }


def main(folder: pathlib.Path, table: pathlib.Path, data_dir: str) -> None:
  """Trains the drawn runs, and writes the table."""
  before = again_table.read(table)
  known = () if before is None else set(_papers(before))
  compared = []
  for _, row in draw(records.read(_RESULTS), known).iterrows():
    commands = row['command'].split(table_runs.AND)
    folders = [train(command, folder, data_dir) for command in commands]
    compared.append(compare(row, folders))
  # Without earlier rows it drops the None.
  rows = pd.concat([before, pd.DataFrame(compared)], ignore_index=True)
  rows.to_csv(table, index=False)


def _papers(rows: pd.DataFrame) -> pd.Series:
  """The paper of each row, as the names of its tables begin."""
  return rows['table'].str.split('_').str[0]


if __name__ == '__main__':
  parser = argparse.ArgumentParser()
  parser.add_argument('folder', type=pathlib.Path)
  parser.add_argument('table', type=pathlib.Path)
  parser.add_argument('--data_dir', required=True)
  main(**vars(parser.parse_args()))
