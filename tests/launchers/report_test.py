"""The report on runs: a page with what is in the files of the runs."""

import collections
import json
import re
import shlex
import shutil

from absl import flags
import numpy as np
import pandas as pd
import pytest

from tests.launchers import nasty_names
from tests.launchers import report_run
from tests.launchers import web_page
from tff_fair.launchers import report
from tff_fair.launchers.pages import report_client_figures
from tff_fair.launchers.pages import report_differences
from tff_fair.launchers.pages import report_figures
from tff_fair.launchers.pages import report_runs
from tff_fair.launchers.pages import report_tables
from tff_fair.launchers.runs import client_names


def _main(*arguments):
  flag_values = flags.FlagValues()
  report.define_flags(flag_values)
  argv = flag_values(['report', *map(str, arguments)])
  report.main(argv, flag_values)


def _render(*folders):
  return report.render(report_runs.read_runs([str(f) for f in folders]))


def _groups(runs):
  return report_tables.fairness_groups(runs, report_differences.compare(runs))


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


@pytest.fixture(scope='module', name='text')
def _text(runs):
  return _render(*runs)


@pytest.fixture(scope='module', name='page')
def _page(text):
  return web_page.Page(text)


@pytest.fixture(name='no_figures')
def _no_figures(monkeypatch):
  """For tests of the rest of the page: figures take most of the time."""
  monkeypatch.setattr(report_figures, 'curves', lambda runs: [])
  monkeypatch.setattr(report_figures, 'distributions', lambda runs: [])
  monkeypatch.setattr(report_figures, 'overview', lambda runs: [])
  monkeypatch.setattr(
    report_client_figures, 'of_clients', lambda run, prefix: ([], [])
  )


class TestPage:
  def test_numbers_equal_those_of_the_summaries(self, runs, page):
    finals = [
      json.loads((run / 'summary.json').read_text())['final'] for run in runs
    ]
    for title, name in {
      'Global model': 'global_{}',
      'Mean of the clients': 'client_{}_mean',
      'Median of the clients': 'client_{}_median',
      'Best client': 'client_{}_max',
      'Variance ↓': 'client_{}_variance',
    }.items():
      rows = page.row(title)
      assert len(rows) == 2
      for cells, score in zip(rows, ('accuracy', 'f1'), strict=True):
        expected = [final[name.format(score)] for final in finals]
        assert [cell[1] for cell in cells] == expected
    (loss,) = page.row('Loss of the global model')
    assert [cell[1] for cell in loss] == [f['global_loss'] for f in finals]

  def test_what_was_dropped_and_what_it_cost(self, page):
    (rejected,) = page.row('Clients whose update is not finite')
    assert [cell[1] for cell in rejected] == [0, 3]
    (seconds,) = page.row('Seconds a round')
    assert [cell[1] for cell in seconds] == [0.25, 0.25]
    (window,) = page.row('Variance, last rounds')
    assert [cell[0] for cell in window] == ['0.01230.01 to 0.0146'] * 2

  def test_best_values_are_marked(self, page):
    worst, _ = page.row('Worst client')
    assert [cell[2] for cell in worst] == ['best', None]
    assert worst[0][0].endswith('(best)')
    best, _ = page.row('Best client')  # Equal.
    assert [cell[2] for cell in best] == [None, None]

  def test_every_client_and_every_column_is_in_the_table(self, runs, page):
    clients = pd.read_csv(runs[1] / 'clients.csv')
    (table,) = (
      t
      for t in page.tables
      if t[0][0][0] == 'client id' and t[1][3][0] == '0.2'
    )
    header, *rows = [[cell[0] for cell in row] for row in table]
    assert header == [name.replace('_', ' ') for name in clients]
    assert rows[0][0] == '0worst'  # The client with the lowest accuracy.
    found = np.array([['0', *rows[0][1:]], *rows[1:]], float)
    np.testing.assert_allclose(found, clients.to_numpy(), rtol=1e-3)

  def test_nothing_comes_from_outside(self, text, page):
    assert '://' not in text
    assert not any('src' in attributes for _, attributes in page.elements)
    for _, attributes in page.elements:
      target = attributes.get('href', '#')
      assert target.startswith('#') or target == 'data:,'
      assert not [name for name in attributes if name.startswith('on')]

  def test_ids_are_unique_and_what_is_referred_to_exists(self, text, page):
    ids = collections.Counter(a['id'] for _, a in page.elements if 'id' in a)
    assert set(ids.values()) == {1}
    referred = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text)
    assert any(clip for clip, _ in referred)
    assert {one or other for one, other in referred} <= set(ids)

  def test_figures_have_text_alternatives(self, page):
    figures = [a for tag, a in page.elements if tag == 'svg' and 'role' in a]
    titles = [a['aria-label'] for a in figures]
    assert len(figures) > 10 and len(set(titles)) == len(figures)
    assert titles[:2] == [
      'Accuracy of the clients (worst, mean, best). FeDABoost: 0.500, 0.700,'
      ' 0.900; FedAvg: 0.200, 0.600, 0.900.',
      'Clients: mean accuracy ↑ over the rounds. FeDABoost: 0.7 at the end;'
      ' FedAvg: 0.6 at the end.',
    ]
    assert any('Clients: worst client ↑' in title for title in titles)
    others = [a for tag, a in page.elements if tag == 'svg' and 'role' not in a]
    assert all(a['aria-hidden'] == 'true' for a in others)

  def test_settings_that_differ_come_first(self, page):
    tables = [t for t in page.tables if t[0][0][0] == 'Flag']
    differing, everything = [
      {row[0][0]: [cell[0] for cell in row[1:]] for row in table[1:]}
      for table in tables
    ]
    # What only one of them reads comes last.
    assert list(differing.items()) == [
      ('algorithm', ['fedaboost', 'fed_avg']),
      ('batch_size', ['5', '1']),
      ('boost_rate', ['0.1', '–']),
    ]
    assert everything['rounds'] == ['3', '3']
    assert 'output_dir' in everything

  @pytest.mark.usefixtures('no_figures')
  def test_one_run_has_no_comparison(self, runs):
    page = web_page.Page(_render(runs[0]))
    assert not [cell for t in page.tables for r in t for cell in r if cell[2]]
    assert 'No client and no update was dropped.' in page.text
    assert 'differ' not in page.text


class TestTextFromFiles:
  def test_is_shown_and_not_run(self, tmp_path):
    bad = '<script>alert(1)</script>'
    name = '<img src=x onerror=alert(2)> $\\frac$ "x'
    folders = [
      report_run.write(tmp_path / name, note=bad),
      report_run.write(tmp_path / 'b', algorithm='fed_avg'),
    ]
    text = _render(*folders)
    page = web_page.Page(text)
    assert not {'script', 'img'} & {tag for tag, _ in page.elements}
    assert bad in page.text
    assert f'FedAvg ({name})' in page.text
    (figure, *_) = (
      a
      for _, a in page.elements
      if 'aria-label' in a and 'role' in a and a['role'] == 'img'
    )
    assert name in figure['aria-label']

  @pytest.mark.parametrize('finished', [True, False])
  def test_clients_are_called_by_their_names(self, tmp_path, finished):
    names = list(nasty_names.NAMES)
    number = len(names)
    folder = report_run.write(
      tmp_path / 'x',
      np.arange(number) / 10,
      num_train=[10] * number,
      names=names,
      finished=finished,
      notes=['The column <b>id</b> is ignored.'],
    )
    text = _render(folder)
    page = web_page.Page(text)
    assert not {'script', 'b'} & {tag for tag, _ in page.elements}
    shown = [client_names.one_line(name, 60) for name in names]
    assert max(map(len, shown)) == 60
    (table,) = (t for t in page.tables if t[0][0][0] == 'client id')
    assert [row[1][0] for row in table] == ['client', *shown]
    for title, name in (('Worst', shown[0]), ('Best', shown[-1])):
      assert page.row(f'{title} client')[0][0][0].endswith(name)
    legend = '0 North, "Main" Hospital …: 1'
    assert legend in page.text
    note = 'The column <b>id</b> is ignored.'
    assert (note in page.text) == finished


@pytest.fixture(scope='module', name='unfinished')
def _unfinished(tmp_path_factory):
  """Two rounds of three; the third is being written."""
  folder = tmp_path_factory.mktemp('x') / 'run'
  report_run.write(
    folder, num_train=(10, 20, 0), finished=False, rounds=2, dropped=1
  )
  for name in ('metrics.csv', 'client_scores.csv', 'reports.csv'):
    with open(folder / name, 'a') as file:
      file.write('3,0')
  return folder


class TestUnfinishedRun:
  @pytest.mark.usefixtures('no_figures')
  def test_says_so_with_what_there_is(self, unfinished):
    page = web_page.Page(_render(unfinished))
    assert 'unfinished after round 2 of 3; scores of round 2' in page.text
    mean, _ = page.row('Mean of the clients')
    assert mean[0][1] == pytest.approx(2 / 3 * 0.6)  # Without the free rider.
    worst, _ = page.row('Worst client')
    assert worst[0][1] == pytest.approx(2 / 3 * 0.5)
    (rejected,) = page.row('Clients whose update is not finite')
    assert rejected[0][1] == 2
    assert not page.row('Seconds a round')
    assert 'resumes the run' in page.text

  def test_is_not_among_the_best(self, unfinished, tmp_path):
    other = report_run.write(
      tmp_path / 'x', (0.1, 0.2, 0), num_train=(10, 20, 0)
    )
    runs = report_runs.read_runs([str(unfinished), str(other)])
    rows = sum(_groups(runs).values(), [])
    assert not [cell for row in rows for cell in row.cells if cell.best]

  def test_before_the_first_evaluation(self, tmp_path):
    folder = report_run.write(
      tmp_path / 'x', finished=False, rounds=1, eval_every=2
    )
    page = web_page.Page(_render(folder))
    assert 'unfinished after round 1 of 3; no scores yet' in page.text
    assert 'There is no evaluation yet.' in page.text
    assert 'No client has a score.' in page.text
    assert 'Alpha' in page.text

  def test_half_written_files_are_no_error(self, tmp_path):
    source = report_run.write(tmp_path / 'whole', finished=False, rounds=2)
    folder = tmp_path / 'run'
    for name in ('metrics.csv', 'reports.csv', 'client_scores.csv'):
      content = (source / name).read_bytes()
      for lines in range(content.count(b'\n')):
        shutil.copytree(source, folder)
        written = b''.join(content.splitlines(True)[:lines])
        (folder / name).write_bytes(written + b'1,')
        if lines < 2 and name != 'client_scores.csv':
          message = f'found no row in {name}.'
          with pytest.raises(report_runs.ReportError, match=message):
            report_runs.read_runs([str(folder)])
        else:
          (run,) = report_runs.read_runs([str(folder)])
          rows = max(lines - 1, 0)
          if name == 'client_scores.csv':  # Three clients a round.
            scored = (rows - 1) % 3 + 1 if rows else 0
            assert run.clients['accuracy'].notna().sum() == scored
          else:
            assert len(getattr(run, name.removesuffix('.csv'))) == rows
        shutil.rmtree(folder)


class TestFairness:
  def test_by_hand(self, tmp_path):
    run = report_run.write(
      tmp_path / 'x', (0.5, 0.7, 0.9, 0), num_train=(9, 9, 9, 0)
    )
    (run,) = report_runs.read_runs([str(run)])
    rows = {r.title: r for r in _groups([run])['Accuracy']}
    assert rows['Worst client ↑'].cells[0].value == 0.5
    # (0.04 + 0 + 0.04) / 3, and 2.1^2 / (3 * 1.55).
    sd = rows['Standard deviation ↓'].cells[0].value
    assert sd == pytest.approx((0.08 / 3) ** 0.5)
    jain = rows['Jain’s index ↑'].cells[0].value
    assert jain == pytest.approx(4.41 / 4.65)

  def test_clients_that_trained_alone_give_a_cf_coefficient(self, tmp_path):
    alone, run, equal = (0.3, 0.4, 0.8), (0.5, 0.7, 0.6), (0.5, 0.5, 0.5)
    folders = [
      report_run.write(tmp_path / 'a', alone, algorithm='standalone'),
      report_run.write(tmp_path / 'b', run, algorithm='cffl'),
      report_run.write(tmp_path / 'c', equal),
    ]
    runs = report_runs.read_runs([str(folder) for folder in folders])
    row = _groups(runs)['Accuracy'][-1]
    assert row.title == 'CF coefficient ↑'
    expected = 100 * np.corrcoef(alone, run)[0, 1]
    assert row.cells[1].value == pytest.approx(expected)
    assert [row.cells[i].text for i in (0, 2)] == ['–', '–']

  @pytest.mark.usefixtures('no_figures')
  def test_runs_on_different_data_are_not_ranked(self, runs, tmp_path):
    other = report_run.write(tmp_path / 'x', (0.1, 0.2, 0.3), task='mnist')
    both = report_runs.read_runs([str(runs[0]), str(other)])
    rows = sum(_groups(both).values(), [])
    assert not [cell for row in rows for cell in row.cells if cell.best]
    page = web_page.Page(_render(runs[0], other))
    assert 'FeDABoost, FedAvg on digits, mnist' in page.text
    assert 'differ in task (digits, mnist)' in page.text


class TestRuns:
  def test_runs_of_the_same_algorithm_are_labelled_by_directory(self, tmp_path):
    folders = [
      report_run.write(tmp_path / 'x' / 'seed_0'),
      report_run.write(tmp_path / 'x' / 'seed_1'),
      report_run.write(tmp_path / 'y', algorithm='cffl'),
    ]
    found = report_runs.read_runs([str(folder) for folder in folders])
    assert [run.label for run in found] == [
      'FedAvg (x/seed_0)',
      'FedAvg (x/seed_1)',
      'CFFL',
    ]

  def test_commands_repeat_or_resume_a_run(self, tmp_path):
    done = report_run.write(tmp_path / 'a b')
    going = report_run.write(tmp_path / 'c', finished=False)
    found = report_runs.read_runs([str(done), str(going)])
    first, second = (shlex.split(report_tables.command(run)) for run in found)
    assert first[:2] == ['tff-fair', 'train']
    assert first[2:] == [
      f'--flagfile={done}/flags.txt',
      f'--output_dir={done}_again',
    ]
    assert second[-1] == f'--output_dir={going}'


class TestFiguresOfClients:
  def test_few_clients_have_a_line_each(self, runs):
    run, _ = report_runs.read_runs([str(run) for run in runs])
    (alpha,), keys = report_client_figures.of_clients(run, 'x')
    assert alpha.title == 'Alpha, the weight of the upload'
    # In the order of their data, and in different colours.
    assert [key.label for key in keys] == [
      '0: 10 examples',
      '1: 20 examples',
      '2: 200 examples',
    ]
    assert all(f'stroke: {key.color}' in alpha.svg for key in keys)

  def test_many_clients_have_bands(self, tmp_path):
    number = 11
    folder = report_run.write(
      tmp_path / 'x', np.arange(number) / 10, num_train=[5] * number
    )
    (run,) = report_runs.read_runs([str(folder)])
    (alpha,), keys = report_client_figures.of_clients(run, 'x')
    assert not keys
    assert 'Bands: the middle half, and all.' in alpha.note
    # Alpha is the accuracy by the round.
    assert 'of 11 clients over the rounds; the median is 1.5 at' in alpha.svg

  def test_a_column_without_a_number_is_not_drawn(self, tmp_path):
    folder = report_run.write(tmp_path / 'x', reports={'alpha': np.nan})
    (run,) = report_runs.read_runs([str(folder)])
    assert report_client_figures.of_clients(run, 'x') == ([], [])

  def test_isolated_clients_are_marked(self, tmp_path):
    reports = {'reputation': (0.4, 0.6, 0), 'reputable': (1, 1, 0)}
    folder = report_run.write(tmp_path / 'x', reports=reports)
    metrics = pd.read_csv(folder / 'metrics.csv')
    metrics['aggregator_threshold'] = 0.1
    metrics.to_csv(folder / 'metrics.csv', index=False)
    (run,) = report_runs.read_runs([str(folder)])
    (figure,), _ = report_client_figures.of_clients(run, 'x')
    assert 'a cross: the server isolates the client' in figure.note


@pytest.mark.usefixtures('no_figures')
def test_a_mistake_is_one_sentence(runs, tmp_path):
  empty = tmp_path / 'empty'
  empty.mkdir()
  unstarted = report_run.write(tmp_path / 'unstarted', finished=False)
  (unstarted / 'metrics.csv').unlink()
  for arguments, expected in (
    ([], 'at least one run directory is required'),
    (
      [tmp_path / 'x'],
      'x must be the directory of a run, found no such directory.',
    ),
    ([empty], 'found no flags.txt in it.'),
    ([unstarted], 'at least one round, found no row in metrics.csv.'),
    ([*runs, f'{runs[1]}/../boost'], 'must be given once'),
    (
      [runs[0], f'--output_file={runs[0] / "metrics.csv"}'],
      'must be new or a report, found another file.',
    ),
    ([runs[0], f'--output_file={tmp_path}'], 'found: Is a directory.'),
  ):
    before = (runs[0] / 'metrics.csv').read_bytes()
    assert expected in _message(*arguments)
    assert (runs[0] / 'metrics.csv').read_bytes() == before


def test_a_damaged_file_is_named(tmp_path):
  for number, (name, text, expected) in enumerate(
    (
      ('flags.txt', '--task=digits\n', 'must have algorithm, rounds, task'),
      ('metrics.csv', 'round\n"1', 'metrics.csv must be a csv file'),
      ('metrics.csv', 'round\n', 'must have the columns round and a row'),
      ('metrics.csv', 'round\n1\n""\n', 'a number in each row of round'),
      (
        'reports.csv',
        'round,client_id,num_examples\n1,0,\n',
        'a number in each row of round, client_id, num_examples',
      ),
      ('reports.csv', 'round\n1\n', 'must have the columns round, client_id'),
      ('client_scores.csv', '\udcff\udcfe', 'client_scores.csv must be a csv'),
      ('clients.csv', 'client_id\n1\n', 'must have the columns client_id, num'),
      ('summary.json', '{"final": {', 'must be as a training run writes it'),
      ('summary.json', '[]', 'summary.json must be as a training run'),
    )
  ):
    folder = report_run.write(tmp_path / str(number))
    (folder / name).write_bytes(text.encode(errors='surrogateescape'))
    assert expected in _message(folder), (name, text)


def _message(*arguments):
  with pytest.raises(SystemExit) as error:
    _main(*arguments)
  message = error.value.code
  assert message.startswith('Error: ') and '\n' not in message
  return message


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
