"""Writes all that the pages say of our results, and their tables of options.

  python -m launchers.write_docs

In the README and in docs/ it replaces what stands between two comments, such as
`<!-- results cffl_table1 -->` and `<!-- end of results cffl_table1 -->`, from
`results/` and from the methods' entries. It also writes docs/claims.md,
results/claims.csv and the pictures of the comparisons. In a clone only.
"""

from collections.abc import Mapping
import pathlib

from absl import flags

from tff_fair.launchers import cli
from tff_fair.launchers.claiming import claims_page
from tff_fair.launchers.claiming import evidence
from tff_fair.launchers.claiming import replication
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.comparison import reading
from tff_fair.launchers.pages import compare_docs
from tff_fair.launchers.results import again_table
from tff_fair.launchers.results import attackers_table
from tff_fair.launchers.results import records
from tff_fair.launchers.results import results_tables
from tff_fair.launchers.runs import run_files

ROOT = pathlib.Path(__file__).resolve().parents[1]
"""The clone."""


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher, of which there are none."""
  del flag_values


def main(argv: list[str]) -> None:
  """Writes everything.

  Args:
    argv: What is left of the command line: the program's name.
  """
  cli.check_only_flags(argv)
  cli.prepare_for_tensorflow()  # Of which the builders are made.
  from tff_fair import runtime

  # TFF's default context, if it is never used, prints an exception at exit.
  runtime.set_execution_context('native')
  with cli.one_sentence_errors(
    records.RecordsError,
    reading.ComparisonError,
    interrupted='interrupted; nothing was written.',
  ):
    comparisons = compare_docs.read_results(ROOT / 'results')
    texts = render(ROOT, comparisons)
  for path, text in texts.items():
    run_files.write_atomically(path, text)
  compare_docs.write_pictures(comparisons, ROOT / 'docs' / 'images')


def render(
  root: pathlib.Path, comparisons: Mapping[str, compare_docs.Result]
) -> dict[pathlib.Path, str]:
  """Renders all pages.

  Args:
    root: The clone.
    comparisons: Those in its folder of results.

  Returns:
    File -> what it should say.

  Raises:
    RecordsError: If a file of the recorded results is wrong.
    ComparisonError: If a block is of a comparison that is not there.
  """
  from tff_fair.launchers.options import write_docs as options_docs

  frame = records.read(root / 'results')
  attacked = attackers_table.read(root / 'results')
  again = again_table.read(root / 'results' / again_table.FILE)
  recorded = evidence.group(frame)
  results = verdicts.judge(recorded)
  texts = {}
  for path in (root / 'README.md', *sorted((root / 'docs').rglob('*.md'))):
    page = results_tables.render_page(path.read_text(), frame)
    page = claims_page.render(page, results)
    page = replication.render(page, results, recorded)
    page = compare_docs.render(page, comparisons)
    page = attackers_table.render(page, attacked)
    page = again_table.render(page, again)
    texts[path] = options_docs.render(page)
  claims = claims_page.to_frame(results).to_csv(index=False)
  texts[root / 'results' / claims_page.FILE] = claims
  texts[root / 'docs' / 'claims.md'] = claims_page.to_page(results, recorded)
  return texts


if __name__ == '__main__':
  cli.run(main, define_flags)
