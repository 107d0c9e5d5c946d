"""The report on runs: a page with what is in the files of the runs."""

import shlex

from absl import flags
import numpy as np
import pandas as pd
import pytest

from tests.launchers import golden
from tests.launchers import nasty_names
from tests.launchers import report_run
from tests.launchers import web_page
from tff_fair.launchers import differences
from tff_fair.launchers import frame
from tff_fair.launchers import report
from tff_fair.launchers import summary
from tff_fair.launchers.pages import report_page
from tff_fair.launchers.plots import client_plots
from tff_fair.launchers.plots import plot_parts
from tff_fair.launchers.runs import client_names


def _main(*arguments):
  flag_values = flags.FlagValues()
  report.define_flags(flag_values)
  argv = flag_values(['report', *map(str, arguments)])
  report.main(argv, flag_values)


def _page(*folders):
  return web_page.Page(report_page.render(frame.read_runs(folders)))


def _has_marks(*folders):
  runs = frame.read_runs(folders)
  found = differences.compare(runs)
  measured = summary.summarize_runs(runs, found.ranked)
  return report_page.make_fairness_table(runs, measured).has_best


@pytest.fixture(scope='module', name='runs')
def _runs(tmp_path_factory):
  """A run of FeDABoost and one of FedAvg with a client that was dropped."""
  root = tmp_path_factory.mktemp('runs')
  boost = report_run.write(
    root / 'boost', algorithm='fedaboost', boost_rate=0.1, batch_size=5
  )
  average = report_run.write(
    root / 'avg',
    (0.2, 0.7, 0.9),
    dropped=1,
    reports={'loss': 0.3},
    batch_size=1,
  )
  return boost, average


@pytest.fixture(scope='module', name='page')
def _two_runs(runs):
  return _page(*runs)


@pytest.fixture(name='no_figures')
def _no_figures(monkeypatch):
  """For tests of the rest of the page: figures take most of the time."""
  monkeypatch.setattr(plot_parts, 'embed', lambda figure: '')


def test_the_page_is_as_it_was_read(runs, page):
  folder = str(runs[0].parent)
  text = '\n'.join(page.lines) + '\n'
  golden.check('report.txt', text.replace(folder, '/runs'))


def test_the_page_is_safe(page):
  page.check_is_safe()


def test_best_values_are_marked(page):
  worst, _ = page.row('Worst client')
  assert [cell[1] for cell in worst] == ['best', None]
  assert '(best)' in worst[0][0] and worst[1][0] == '0.2000client\xa00'
  variance, _ = page.row('Variance\xa0↓')
  assert [cell[1] for cell in variance] == ['best', None]
  best, _ = page.row('Best client')  # Equal.
  assert [cell[1] for cell in best] == [None, None]


def test_every_client_and_every_column_is_in_the_table(tmp_path):
  folder = report_run.write(
    tmp_path / 'x', (0.7, 0.2, np.nan, 0.1), num_train=(9, 9, 9, 0)
  )
  table = report_page.make_client_table(frame.read_run(folder))
  clients = pd.read_csv(folder / 'clients.csv')
  assert table.header == [name.replace('_', ' ') for name in clients]
  # The lowest accuracy first; no score, or no training data, last.
  assert [row.title for row in table.rows] == ['1', '0', '2', '3']
  assert [row.mark for row in table.rows] == ['worst', '', '', '']
  values = [cell.text for cell in table.rows[0].cells]
  assert values == ['9', '10', '0.2', '0.1', '1']
  assert table.rows[2].cells[2].text == '–'


def test_settings_that_differ_come_first(runs):
  read = frame.read_runs(runs)
  differing = report_page.make_settings_table(read, only_differing=True)
  # What only one of them reads comes last.
  assert [
    (row.title, *(cell.text for cell in row.cells)) for row in differing.rows
  ] == [
    ('algorithm', 'fedaboost', 'fed_avg'),
    ('batch_size', '5', '1'),
    ('boost_rate', '0.1', '–'),
  ]
  everything = report_page.make_settings_table(read, only_differing=False)
  marks = {row.title: row.mark for row in everything.rows}
  assert marks['batch_size'] == 'differs'
  assert marks['rounds'] == marks['output_dir'] == ''


def test_only_like_finished_runs_have_marks(runs, tmp_path):
  unlike = report_run.write(tmp_path / 'x', (0.1, 0.2, 0.3), task='mnist')
  going = report_run.write(tmp_path / 'y', (0.1, 0.2, 0.3), finished=False)
  like = report_run.write(tmp_path / 'z', (0.1, 0.2, 0.3), algorithm='ditto')
  boost, _ = runs
  assert _has_marks(boost, like)
  assert not _has_marks(boost, unlike)
  assert not _has_marks(boost, going)
  assert not _has_marks(boost)


@pytest.mark.usefixtures('no_figures')
def test_an_unfinished_run_says_so(tmp_path):
  page = _page(report_run.write(tmp_path / 'x', finished=False, rounds=2))
  assert 'unfinished after round 2 of 3; scores of round 2' in page.text
  assert 'this command resumes the run' in page.text
  assert not page.row('Seconds a round')
  page = _page(
    report_run.write(tmp_path / 'y', finished=False, rounds=1, eval_every=2)
  )
  for expected in (
    'unfinished after round 1 of 3; no scores yet',
    'There is no evaluation yet.',
  ):
    assert expected in page.text


def test_texts_of_files_are_shown_and_not_run(tmp_path):
  bad = '<script>alert(1)</script>'
  name = '<img src=x onerror=alert(2)> $\\frac$ "x'
  page = _page(
    report_run.write(tmp_path / name, note=bad, notes=[bad]),
    report_run.write(tmp_path / 'b', algorithm='fed_avg'),
  )
  page.check_is_safe()
  assert page.text.count(bad) > 1
  assert f'FedAvg ({name})' in page.text


@pytest.mark.parametrize('finished', [True, False])
def test_clients_are_called_by_their_names(tmp_path, finished):
  names = list(nasty_names.NAMES)
  folder = report_run.write(
    tmp_path / 'x',
    np.arange(len(names)) / 10,
    num_train=[10] * len(names),
    names=names,
    finished=finished,
  )
  page = _page(folder)
  page.check_is_safe()
  shown = [client_names.one_line(name, 60) for name in names]
  (table,) = (t for t in page.tables if t[0][0][0] == 'client id')
  assert [row[1][0] for row in table] == ['client', *shown]
  worst, best = (
    page.row(f'{which} client')[0][0][0] for which in ('Worst', 'Best')
  )
  assert worst.endswith('client\xa00 North, "Main" Hospital ward 2')
  assert best.endswith(f'client\xa06 {shown[-1]}')


def test_commands_repeat_or_resume_a_run(tmp_path):
  done = frame.read_run(report_run.write(tmp_path / 'a b'))
  going = frame.read_run(report_run.write(tmp_path / 'c', finished=False))
  first, second = (
    shlex.split(report_page.make_command(run)) for run in (done, going)
  )
  assert first == [
    'tff-fair',
    'train',
    f'--flagfile={done.directory}/flags.txt',
    f'--output_dir={done.directory}_again',
  ]
  assert second[-1] == f'--output_dir={going.directory}'


class TestFiguresOfClients:
  def test_few_clients_have_a_line_each(self, runs):
    figure = client_plots.reports(frame.read_run(runs[0]))
    (axes,) = figure.axes
    assert axes.get_title() == 'Alpha, the weight of the upload'
    # In the order of their data; alpha is the accuracy by the round.
    found = {x.get_label(): x.get_ydata().tolist() for x in axes.lines}
    assert list(found) == [
      f'{i}: {n} examples' for i, n in enumerate((10, 20, 200))
    ]
    assert found['1: 20 examples'] == pytest.approx([0.7, 1.4, 2.1])

  def test_many_clients_are_rows_of_a_heat_map(self, tmp_path):
    number = 11
    folder = report_run.write(
      tmp_path / 'x', np.arange(number) / 10, num_train=[5] * number
    )
    axes, _ = client_plots.reports(frame.read_run(folder)).axes
    (cells,) = axes.collections
    expected = np.outer(np.arange(number) / 10, (1, 2, 3))
    np.testing.assert_allclose(cells.get_array(), expected)

  def test_a_column_without_a_number_is_not_drawn(self, tmp_path):
    folder = report_run.write(tmp_path / 'x', reports={'alpha': np.nan})
    assert client_plots.reports(frame.read_run(folder)) is None


def _message(*arguments):
  with pytest.raises(SystemExit) as error:
    _main(*arguments)
  message = error.value.code
  assert message.startswith('Error: ') and '\n' not in message
  return message


@pytest.mark.usefixtures('no_figures')
def test_a_mistake_is_one_sentence(runs, tmp_path):
  before = (runs[0] / 'metrics.csv').read_bytes()
  for arguments, expected in (
    ([], 'at least one run directory is required'),
    ([tmp_path / 'x'], 'found no such directory.'),
    (
      [runs[0], f'--output_file={runs[0] / "metrics.csv"}'],
      'must be new or a report, found another file.',
    ),
    ([runs[0], f'--output_file={tmp_path}'], 'found: Is a directory.'),
  ):
    assert expected in _message(*arguments)
  assert (runs[0] / 'metrics.csv').read_bytes() == before


@pytest.mark.usefixtures('no_figures')
def test_an_earlier_report_is_replaced(tmp_path, capsys):
  folder = report_run.write(tmp_path / 'x')
  _main(folder)
  path = folder / 'report.html'
  assert capsys.readouterr().out == f'report: {path}\n'
  first = path.read_bytes()
  with open(path, 'a') as file:
    file.write('x')
  _main(folder)
  assert path.read_bytes() == first
