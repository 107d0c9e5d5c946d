"""Private runs: their noise and their epsilon, and what cannot be private."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.launchers import digits_run
from tff_fair import privacy
from tff_fair.launchers import frame
from tff_fair.launchers.options import builders
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import private
from tff_fair.launchers.options import settings
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.pages import report_page

_FLAGS = {
  'algorithm': 'ditto',
  'client_fraction': 0.5,
  'checkpoint_every': 1,
  'dp_noise_multiplier': 0.8,
  'dp_clip': 0.5,
}
_KERNEL = 'process/global_model_weights/trainable/0'


@pytest.fixture(scope='module', name='finished')
def _finished(tmp_path_factory):
  """A run of three of six clients a round, and what it printed."""
  path = tmp_path_factory.mktemp('run')
  return path, digits_run.main(path, **_FLAGS)


@pytest.mark.full
def test_epsilon_is_in_all_files(finished):
  run, printed = finished
  accounting = privacy.Accounting(
    noise_multiplier=0.8, num_clients=6, clients_per_round=3
  )
  rounds = pd.read_csv(run / 'metrics.csv')
  expected = [accounting.epsilon(1), accounting.epsilon(2)]
  np.testing.assert_allclose(rounds['epsilon'], expected)
  np.testing.assert_allclose(rounds['delta'], 6**-1.1)
  assert (rounds['aggregator_clipping_norm'] == 0.5).all()
  summary = json.loads((run / 'summary.json').read_text())
  assert summary['final']['epsilon'] == pytest.approx(expected[-1])
  assert '3 of 6 clients drawn each round' in summary['notes'][-1]
  assert f'privacy: epsilon {expected[-1]:.4g} at delta 0.14' in printed
  page = report_page.render(frame.read_runs([run]))
  assert 'Epsilon' in page and f'{expected[-1]:.4g}' in page


def test_a_dry_run_says_the_epsilon(tmp_path):
  printed = digits_run.main(tmp_path, **_FLAGS, dry_run=True)
  accounting = privacy.Accounting(
    noise_multiplier=0.8, num_clients=6, clients_per_round=3
  )
  line = printed.splitlines()[-1].split()
  assert line[:4] == ['epsilon', 'after', '2', 'rounds,']
  assert line[-1] == f'{accounting.epsilon(2):.4g}'


@pytest.mark.full
def test_the_model_has_the_noise(finished, tmp_path):
  run, _ = finished
  digits_run.main(
    tmp_path, **{**_FLAGS, 'dp_noise_multiplier': 1e-6, 'rounds': 1}
  )
  noisy, plain = (
    digits_run.variables(path, 1)[_KERNEL] for path in (run, tmp_path)
  )
  # The multiplier times the clip, by the clients of the round.
  assert np.std(noisy - plain) == pytest.approx(0.8 * 0.5 / 3, rel=0.05)


@pytest.mark.full
def test_a_resumed_run_has_the_same_noise(finished):
  run, _ = finished
  before = digits_run.tables(run)
  (run / 'checkpoints/round_2.safetensors').unlink()
  digits_run.main(run, **_FLAGS)
  assert digits_run.tables(run) == before


def test_statistics_of_batches_and_few_clients_are_refused(tmp_path):
  for flags, message in (
    (
      {'model': 'cnn_fedquad'},
      '--dp_noise_multiplier must be given with a model that has trainable',
    ),
    (
      {'dp_clip': 'adaptive'},
      '--dp_noise_multiplier must be below 0.3, a tenth of the 3 clients',
    ),
  ):
    with pytest.raises(SystemExit, match=message):
      digits_run.main(tmp_path, **{**_FLAGS, **flags})


def _refusal(*arguments):
  flags = train_flags.parse([*arguments])
  try:
    settings.resolve(flags, train_flags.FLAG_NAMES)
  except settings.SettingsError as error:
    return str(error)
  return ''


def test_which_methods_can_be_private():
  can = [n for n, m in methods.METHODS.items() if not private.sent_besides(m)]
  assert sorted(can) == [
    *('ditto', 'fed_avg', 'fed_mpr', 'fed_prox', 'fedakd', 'fedquad', 'moon'),
    *('prop_fair', 'quadruplet_fl', 'supcon_fl', 'triplet_fl'),
  ]
  for name in can:
    parameters = builders.parameters(builders.get(name))
    assert 'model_aggregator' in parameters, name


def test_refusals():
  noise = '--dp_noise_multiplier=1'
  for line, message in (
    ('fed_avg', ''),
    ('fed_avg --dp_noise_multiplier=0', ''),
    ('scaffold', 'found --algorithm=scaffold, whose clients also send the'),
    ('fed_rdn', 'send the mean and the standard deviation of their images.'),
    ('fedaboost', 'is no plain mean of the updates: SammeAlphaFactory.'),
    ('standalone', 'found --algorithm=standalone, whose rule is no plain'),
    ('fed_avg --robust', 'must be given without --robust, whose zeroing'),
    ('fedquad --nouse_ce', 'must be given without --nouse_ce, whose'),
    ('fedakd --variant=correct_agg', 'without --variant=correct_agg, which'),
    ('fed_avg --max_update_norm=0', 'without --max_update_norm=0, with'),
    ('fed_avg --dp_clip=often', "above 0 or 'adaptive', found 'often'."),
    ('fed_avg --dp_clip=-1', "above 0 or 'adaptive', found '-1'."),
    (
      'fed_avg --dp_noise_multiplier=0 --dp_clip=1',
      '--dp_clip must not be given with --dp_noise_multiplier=0.0',
    ),
  ):
    found = _refusal(noise, *f'--algorithm={line}'.split())
    assert message in found and bool(message) == bool(found), (line, found)
