"""Runs with attackers: who is one, whose scores count, what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.launchers import digits_run
from tff_fair import client
from tff_fair.launchers import differences
from tff_fair.launchers import frame
from tff_fair.launchers.options import settings
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.pages import report_page

_FLAGS = {'algorithm': 'ditto', 'attack': 'scaled_update', 'data_seed': 3}


@pytest.fixture(scope='module', name='finished')
def _finished(tmp_path_factory):
  """A run with one attacker of six clients, and what it printed."""
  path = tmp_path_factory.mktemp('run')
  return path, digits_run.main(path, **_FLAGS)


@pytest.mark.full
def test_attackers_do_not_count(finished):
  path, printed = finished
  clients = digits_run.read(path, 'clients.csv')
  attacker = clients['client_id'][clients['attacker'] == 1].item()
  reports = digits_run.read(path, 'reports.csv')
  assert set(reports['client_id'][reports['attacker'] == 1]) == {attacker}
  honest = clients[clients['client_id'] != attacker]['accuracy']
  last = digits_run.read(path, 'metrics.csv').iloc[-1]
  summary = json.loads((path / 'summary.json').read_text())
  for found in (last, summary['final']):
    assert found['client_accuracy_mean'] == pytest.approx(honest.mean())
    assert found['client_accuracy_min'] == pytest.approx(honest.min())
    assert found['client_accuracy_variance'] == pytest.approx(np.var(honest))
  assert honest.mean() != clients['accuracy'].mean()
  said = (
    '16.7 % of the clients are attackers (scaled_update), left out of the'
    f' scores of clients and of fairness measures: client {attacker}.'
  )
  assert said in printed and said in summary['notes']
  run = frame.read_run(path)
  assert sorted(run.honest.index) == sorted({*range(6)} - {attacker})
  spread = run.curve('client_accuracy_low').iloc[-1]
  assert spread == pytest.approx(np.quantile(honest, 0.25))
  page = report_page.render([run])
  assert said in page and 'Attackers, clients without training data' in page


@pytest.mark.full
def test_an_unfinished_run_knows_its_attackers(finished, tmp_path):
  path, _ = finished
  for name in ('flags.txt', 'metrics.csv', 'reports.csv', 'client_scores.csv'):
    (tmp_path / name).write_bytes((path / name).read_bytes())
  found = frame.read_run(tmp_path).honest
  assert list(found.index) == list(frame.read_run(path).honest.index)


@pytest.mark.full
def test_a_run_without_attackers_is_as_ever(finished, tmp_path):
  values = {**_FLAGS, 'attack': None}
  printed = digits_run.main(tmp_path / 'plain', **values)
  assert 'are attackers' not in printed
  assert '--attack' not in (tmp_path / 'plain/flags.txt').read_text()
  tables = digits_run.tables(tmp_path / 'plain')
  assert not any(b'attacker' in table for table in tables.values())
  digits_run.main(tmp_path / 'none', **{**values, 'attack': 'none'})
  assert digits_run.tables(tmp_path / 'none') == tables
  runs = frame.read_runs([finished[0], tmp_path / 'plain'])
  warnings = ' '.join(differences.compare(runs).warnings)
  assert 'clients without a score (0.2 attackers, none)' in warnings


@pytest.mark.full
def test_the_attackers_are_those_of_the_data_seed(finished, tmp_path):
  def attackers(name, **flags):
    digits_run.main(tmp_path / name, **{**_FLAGS, 'rounds': 1, **flags})
    clients = digits_run.read(tmp_path / name, 'clients.csv')
    return list(clients['client_id'][clients['attacker'] == 1])

  path, _ = finished
  clients = pd.read_csv(path / 'clients.csv')
  usual = list(clients['client_id'][clients['attacker'] == 1])
  alone = {'algorithm': 'standalone', 'client_seed': 5, 'model_seed': 5}
  assert attackers('alone', **alone) == usual
  half = attackers('half', attack_fraction=0.5)
  assert len(half) == 3


def test_a_dry_run_says_it(tmp_path):
  printed = digits_run.main(tmp_path, **_FLAGS, dry_run=True)
  assert '16.7 % of the clients are attackers (scaled_update)' in printed


def test_refusals(tmp_path):
  for flags, message in (
    (
      {'attack_fraction': 0.05},
      '--attack_fraction must make at least one of the clients with training'
      ' data an attacker, and leave at least one honest, found 0.05 of 6.',
    ),
    ({'attack_fraction': 0.95}, 'found 0.95 of 6.'),
    ({'attack_fraction': 0.0}, '--attack_fraction must be .*, found 0.0'),
    ({'attack_fraction': 1.0}, '--attack_fraction must be .*, found 1.0'),
    (
      {'attack': 'label_flip', 'attack_strength': 2.0},
      '--attack_strength must not be given with --attack=label_flip',
    ),
    (
      {'attack': None, 'attack_fraction': 0.5},
      '--attack_fraction must not be given with --attack=None',
    ),
  ):
    with pytest.raises(SystemExit, match=message):
      digits_run.main(tmp_path, **{**_FLAGS, **flags})
  assert not (tmp_path / 'metrics.csv').exists()


def test_flags_have_all_attacks():
  assert train_flags.FLAGS['attack'].choices == ('none', *client.ATTACKS) or (
    train_flags.FLAGS['attack'].choices == ['none', *client.ATTACKS]
  )
  found = settings.resolve(
    train_flags.parse(['--attack=sign_flip']), train_flags.FLAG_NAMES
  )
  assert found['attack_fraction'] == 0.2 and found['attack_strength'] is None
