"""Writes what a comparison has found: its two files, pages and pictures."""

from collections.abc import Mapping
import json
import pathlib
from typing import Any

import pandas as pd

from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import reading
from tff_fair.launchers.pages import compare_page
from tff_fair.launchers.plots import compare_plots
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.show import text


def write(
  frame: pd.DataFrame, facts: Mapping[str, Any], output_dir: pathlib.Path
) -> list[str]:
  """Writes a comparison."""
  csv_file, json_file = output_dir / 'compare.csv', output_dir / 'compare.json'
  run_files.write_atomically(csv_file, frame.to_csv(index=False))
  run_files.write_atomically(json_file, json.dumps(facts, indent=2) + '\n')
  # From the files, so that pages of committed results are the same.
  analysis = analysis_lib.analyse(*reading.read(csv_file, json_file))
  for name, content in (
    ('compare.md', compare_page.render_markdown(analysis)),
    ('compare.html', compare_page.render(analysis)),
  ):
    run_files.write_atomically(output_dir / name, content)
  compare_plots.write(analysis, output_dir / 'plots')
  return text.describe_methods(analysis)
