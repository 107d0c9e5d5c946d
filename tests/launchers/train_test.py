"""The launcher of single runs: one run, its resumption, and bad input."""

import contextlib
import json
import re
import resource
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.launchers import digits_run
from tff_fair import plugins
from tff_fair.launchers.runs import run_summary


@pytest.fixture(scope='module', name='finished')
def _finished(tmp_path_factory):
  """A run of FeDABoost of three rounds, and what it printed."""
  path = tmp_path_factory.mktemp('run')
  return path, digits_run.main(path, rounds=3, eval_every=2, checkpoint_every=1)


def test_writes_what_the_readme_promises(finished):
  path, printed = finished
  assert {p.name for p in path.iterdir()} == {
    '.lock', 'checkpoints', 'client_scores.csv', 'clients.csv', 'flags.txt',
    'metrics.csv', 'model.json', 'model.keras', 'plots', 'reports.csv',
    'summary.json', 'tensorboard',
  }  # fmt: skip
  assert list((path / 'tensorboard').iterdir())
  assert digits_run.plots(path) == {'learning_curves.png', 'client_f1.png'}
  metrics = digits_run.read(path, 'metrics.csv')
  assert metrics['round'].tolist() == [1, 2, 3]
  assert metrics['num_clients'].tolist() == [3, 3, 3]
  # Every other round, and always at the end.
  assert metrics['global_f1'].between(0, 1).tolist() == [False, True, True]
  clients = digits_run.read(path, 'clients.csv')
  assert clients['client_id'].tolist() == list(range(6))
  assert clients['num_test'].sum() == pytest.approx(0.2 * 1797, abs=6)
  assert {'weight', 'gamma'} <= set(clients)
  reports = digits_run.read(path, 'reports.csv')
  assert len(reports) == 9
  assert {'alpha', 'aggregated', 'weight', 'gamma'} <= set(reports)
  scores = digits_run.read(path, 'client_scores.csv')
  assert scores['round'].tolist() == [2] * 6 + [3] * 6
  for name in ('client_id', 'accuracy', 'f1', 'loss'):
    assert scores[name].tolist()[6:] == clients[name].tolist()
  summary = json.loads((path / 'summary.json').read_text())
  assert summary['algorithm'] == 'fedaboost'
  assert summary['rounds'] == 3 and 'stopped_early' not in summary
  assert summary['version'] == run_summary.code_version()
  for name, value in summary['final'].items():
    assert value == pytest.approx(metrics[name].iloc[-1]), name
  assert summary['client_f1_variance_window']['mean'] == pytest.approx(
    metrics['client_f1_variance'].mean()
  )
  assert json.loads((path / 'model.json').read_text()) == {
    'task': 'digits',
    'input_shape': [None, 8, 8, 1],
    'output': 'logits',
    'classes': list(range(10)),
  }
  assert 'fedaboost on digits: 6 clients, 3 rounds' in printed
  worst = clients.loc[clients['accuracy'].idxmin()]
  number, client_id = f'{worst["accuracy"]:.4f}', int(worst['client_id'])
  assert f'    worst client  {number}, client {client_id}\n' in printed
  for column, name in (
    ('client_accuracy_mean', 'mean'),
    ('client_accuracy_worst10', 'worst 10 %'),
    ('client_accuracy_jain', "Jain's index"),
    ('global_f1', 'F1'),
  ):
    assert f'    {name:14}{summary["final"][column]:.4f}\n' in printed
  assert max(map(len, printed.partition('after 3')[2].splitlines()[:-4])) <= 80


def test_a_run_resumes_from_its_flags_file_to_the_same_files(
  finished, tmp_path
):
  whole, _ = finished
  run = tmp_path / 'run'
  shutil.copytree(whole, run)
  # The last checkpoint is damaged, so that round 3 is repeated.
  (run / 'checkpoints/round_3.safetensors').write_bytes(b'')
  (run / 'metrics.csv').unlink()
  text = (run / 'flags.txt').read_text()
  (tmp_path / 'flags').write_text(text.replace(f'={whole}\n', f'={run}\n'))
  with pytest.warns(UserWarning, match='round_3.* is damaged'):
    printed = digits_run.main_with(
      f'--flagfile={tmp_path / "flags"}', f'--compare_with={whole}'
    )
  assert 'resuming after round 2' in printed
  assert digits_run.tables(run) == digits_run.tables(whole)
  assert digits_run.models(run) == digits_run.models(whole)
  expected = digits_run.variables(whole, 3)
  assert len(expected) > 4
  for name, value in digits_run.variables(run, 3).items():
    np.testing.assert_array_equal(value, expected[name])
  # With a row for each of the two runs.
  sizes = [(r / 'plots/client_f1.png').stat().st_size for r in (whole, run)]
  assert sizes[0] < sizes[1]
  assert f'drawn: {run}/plots/client_f1.png' in printed


def test_a_finished_run_is_shown_again_whatever_happened_to_its_files(
  finished, tmp_path
):
  whole, printed = finished
  run = tmp_path / 'run'
  shutil.copytree(whole, run)
  for name in ('metrics.csv', 'reports.csv', 'model.keras', 'flags.txt'):
    (run / name).unlink()
  (run / 'client_scores.csv').write_bytes(b'\xff\0garbage')
  (run / 'clients.csv').write_text('')
  again = digits_run.main(run, rounds=3, eval_every=2, checkpoint_every=1)
  assert 'resuming after round 3' in again
  assert digits_run.tables(run) == digits_run.tables(whole)
  assert digits_run.models(run) == digits_run.models(whole)
  results = [
    text.partition('after 3 rounds')[2].partition('results:')[0]
    for text in (printed, again)
  ]
  assert results[0] == results[1]
  # What was timed, and the code that was used, stay.
  summaries = [(r / 'summary.json').read_text() for r in (whole, run)]
  assert summaries[0] == summaries[1]
  assert json.loads(summaries[0])['median_seconds_per_round'] > 0
  assert (run / 'flags.txt').exists()


@pytest.mark.full
def test_accuracies_of_the_last_rounds_are_averaged(tmp_path):
  values = dict(rounds=4, eval_every=3, checkpoint_every=1, score_last=2)
  whole, run = tmp_path / 'whole', tmp_path / 'run'
  printed = digits_run.main(whole, test_leak='test_trains', **values)
  assert 'LEAK, a control run (test_leak=test_trains)' in printed
  assert 'accuracy of the clients, mean of the last 2 rounds' in printed
  scores = digits_run.read(whole, 'client_scores.csv')
  assert sorted(set(scores['round'])) == [3, 4]
  each = scores.pivot(index='client_id', columns='round', values='accuracy')
  assert (each[3] != each[4]).any()
  clients = digits_run.read(whole, 'clients.csv')
  np.testing.assert_allclose(clients['accuracy'], each.mean(axis=1), rtol=1e-12)
  summary = json.loads((whole / 'summary.json').read_text())
  assert summary['score_last'] == 2 and 'LEAK' in summary['notes'][0]
  final = summary['final']
  assert final['client_accuracy_max'] == clients['accuracy'].max()
  metrics = digits_run.read(whole, 'metrics.csv')
  assert final['global_accuracy'] == metrics['global_accuracy'].iloc[-1]
  # As after an interruption between the rounds that are averaged.
  shutil.copytree(whole, run)
  for name in ('summary.json', 'clients.csv'):
    (run / name).unlink()
  (run / 'checkpoints' / 'round_4.safetensors').unlink()
  again = digits_run.main(run, test_leak='test_trains', **values)
  assert 'resuming after round 3' in again
  assert digits_run.tables(run) == digits_run.tables(whole)
  resumed = json.loads((run / 'summary.json').read_text())
  assert resumed['final'] == final


@pytest.mark.full
def test_a_run_that_stops_early(tmp_path):
  # No score changes, and the first of equal ones is the best.
  values = dict(client_learning_rate=1e-12, rounds=4, checkpoint_every=4)
  stopping = {**values, 'stop_after': 2, 'stop_metric': 'client_f1_worst10'}
  whole, run = tmp_path / 'whole', tmp_path / 'run'
  digits_run.main(whole, **values)
  printed = digits_run.main(run, **stopping)
  sentence = 'stopped early after round 3 of 4: client_f1_worst10 was best, '
  assert sentence in printed and '\nafter 3 rounds:\n' in printed
  before = digits_run.tables(run)
  summary = json.loads((run / 'summary.json').read_text())
  assert summary['rounds'] == 3
  stop = summary['stopped_early']
  assert (stop['round'], stop['best_round']) == (3, 1)
  assert stop['best'] == summary['final'][stop['metric']]
  # The same command again trains nothing.
  assert sentence in digits_run.main(run, **stopping)
  assert digits_run.tables(run) == before
  # It goes on, to where it had ended without the flag.
  printed = digits_run.main(run, **values)
  assert 'resuming after round 3' in printed and 'stopped' not in printed
  assert digits_run.tables(run) == digits_run.tables(whole)
  assert digits_run.models(run) == digits_run.models(whole)
  summary = json.loads((run / 'summary.json').read_text())
  assert summary['rounds'] == 4 and 'stopped_early' not in summary


class _Fails(tf.keras.layers.Layer):
  def call(self, inputs):
    with tf.control_dependencies([tf.debugging.Assert(False, ['too hot'])]):
      return tf.identity(inputs)


def _build_failing(input_shape, num_classes):
  layers = tf.keras.layers
  return tf.keras.Sequential(
    [
      tf.keras.Input(input_shape),
      layers.Flatten(),
      _Fails(),
      layers.Dense(num_classes),
    ]
  )


@pytest.mark.usefixtures('plugins_as_before')
def test_a_model_that_fails_in_a_round_says_why(tmp_path):
  plugins.register_model('fails', _build_failing)
  with pytest.raises(SystemExit) as error:
    digits_run.main(
      tmp_path, model='fails', algorithm='fed_avg', preset=None, task='digits'
    )
  assert re.fullmatch('Error: round 1 failed: .*too hot.*', error.value.code)


@pytest.mark.full
def test_the_best_round_on_the_holdout_is_exported(tmp_path):
  values = dict(score_holdout=True, export='best', client_learning_rate=0.3)
  printed = digits_run.main(tmp_path / 'run', rounds=5, **values)
  holdout = digits_run.read(tmp_path / 'run', 'metrics.csv')[
    'holdout_accuracy_mean'
  ]
  best = int(holdout.idxmax()) + 1
  assert 1 < best < 5
  assert f'The exported model is that of round {best},' in printed
  values['export'] = 'global'
  digits_run.main(tmp_path / 'best', rounds=best, **values)
  found, expected = (
    digits_run.models(tmp_path / name) for name in ('run', 'best')
  )
  assert found == expected and len(found) == 1


def test_a_checkpoint_of_other_settings_is_refused(finished, tmp_path):
  run = tmp_path / 'run'
  shutil.copytree(finished[0], run)
  (run / 'flags.txt').unlink()
  before = (run / 'metrics.csv').read_bytes()
  with pytest.raises(SystemExit) as error:
    digits_run.main(
      run, rounds=3, eval_every=2, checkpoint_every=1, model_seed=1
    )
  assert re.fullmatch(
    'Error: .*round_3.* that model_seed is 0 there and 1 here.*',
    error.value.code,
  )
  assert (run / 'metrics.csv').read_bytes() == before


@contextlib.contextmanager
def _no_file_above(size):
  """A context in which no file can grow beyond `size` bytes."""
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.full
def test_a_run_whose_files_could_not_be_written_resumes(finished, tmp_path):
  whole, _ = finished
  values = dict(rounds=3, eval_every=2, checkpoint_every=1)
  for size, left in (
    (20, []),  # Not even the settings.
    (20_000, []),
    ((whole / 'checkpoints/round_1.safetensors').stat().st_size, ['round_1']),
  ):
    with _no_file_above(size), pytest.raises(SystemExit) as error:
      digits_run.main(tmp_path, **values)
    assert re.match(r'Error: .*: File too large\. When that', str(error.value))
    folder = tmp_path / 'checkpoints'
    assert sorted(path.stem for path in folder.glob('*')) == left
  assert 'resuming after round 1' in digits_run.main(tmp_path, **values)
  assert digits_run.tables(tmp_path) == digits_run.tables(whole)


def test_a_second_launcher_on_the_directory_is_refused(tmp_path):
  claimed = f"""
import pathlib, sys, time
from tff_fair.launchers.runs import run_files
with run_files.claim(pathlib.Path({str(tmp_path)!r})):
  print('claimed', flush=True)
  time.sleep(60)
"""
  with subprocess.Popen(
    [sys.executable, '-c', claimed], stdout=subprocess.PIPE
  ) as process:
    assert process.stdout.readline() == b'claimed\n'
    with pytest.raises(SystemExit, match='found that another one is writing'):
      digits_run.main(tmp_path, num_clients=5000)
    process.kill()
  # The claim ends with its holder.
  with pytest.raises(SystemExit, match='5000 clients'):
    digits_run.main(tmp_path, num_clients=5000)


@pytest.mark.full
def test_a_personal_model_of_no_use_ends_the_run(tmp_path, recwarn):
  """Its logits are NaN, which are class 0 for an accuracy."""
  values = dict(
    preset=None,
    algorithm='standalone',
    num_clients=3,
    data_fraction=0.2,
    local_epochs=None,
    client_learning_rate=1e9,
    checkpoint_every=1,
  )
  sentences = []
  for _ in ('the run', 'its resumption'):
    with pytest.raises(SystemExit) as error:
      digits_run.main(tmp_path, **values)
    sentences.append(str(error.value))
    assert not (tmp_path / 'summary.json').exists()
    assert not digits_run.models(tmp_path)
  assert sentences[0] == sentences[1]
  scores = digits_run.read(tmp_path, 'client_scores.csv')
  number = scores['round'].max()
  last = scores[scores['round'] == number]
  saved = digits_run.checkpoints(tmp_path)
  assert saved == list(range(1, number))[-3:]
  # No prediction can be read from NaN: not of these clients, nor their mean.
  assert last['accuracy'].isna().any()
  rounds = digits_run.read(tmp_path, 'metrics.csv').set_index('round')
  assert rounds['client_accuracy_mean'].isna().tolist() == [
    *[False] * (number - 1),
    True,
  ]
  bad = last['client_id'][~np.isfinite(last['loss'])]
  who = ', '.join(f'client {i}' for i in bad)
  assert sentences[0].startswith(
    f'Error: the run has diverged: the loss of the personal model of {who} is'
    f' not finite after round {number}; a lower learning rate may help'
  )
  assert not [w for w in recwarn if w.category is RuntimeWarning]


@pytest.mark.full
def test_a_personal_model_that_was_never_trained_ends_the_run(tmp_path):
  """A client's inputs of 1e30 have a loss, but none after the first step."""
  rows = np.arange(90)
  x = np.stack([rows % 2, rows % 5], axis=1).astype(np.float32)
  x[rows % 3 == 1] *= 1e30
  names = np.array(['Ulm', 'Bonn', 'Jena'])[rows % 3]
  np.savez(tmp_path / 'own.npz', x=x, y=rows % 2, client=names)
  values = dict(
    preset=None,
    task='arrays',
    data_file=tmp_path / 'own.npz',
    num_clients=None,
    local_epochs=None,
    batch_size=5,
  )
  message = (
    r'^Error: the run has diverged: no update of client 0 \(Bonn\) was finite'
    r' in 2 rounds, whose model is as it was at the start; a lower'
  )
  with pytest.raises(SystemExit, match=message):
    digits_run.main(tmp_path / 'alone', **values, algorithm='standalone')
  # The global model is that of the others.
  digits_run.main(tmp_path / 'together', **values, algorithm='fed_avg')


def test_a_run_that_trains_nothing_fails(tmp_path):
  values = dict(preset=None, algorithm='q_fed_avg', data_fraction=0.2)
  with pytest.raises(
    SystemExit, match="^Error: no round has aggregated any client's update"
  ):
    digits_run.main(tmp_path, q=1e30, num_clients=3, **values)
  assert not (tmp_path / 'summary.json').exists()
  assert not digits_run.models(tmp_path)


# Flags | the message.
_REFUSED = r"""
algorithm=fed_avg boost_rate=0.1 | --boost_rate must not be given with --algorithm=fed_avg
output_dir={whole} | --output_dir=.* that .*--rounds is 3 there and 2
output_dir={tmp}/file/run | must be a directory that can be written, found: Not a directory
compare_with={tmp} | --compare_with=.* must be the directory of a finished run
preset=fedaboost_cifar_20 data_dir={tmp} | The data file 'cifar10.npz'
task=mnist data_dir={tmp} | The data file '.*mnist.npz' must hold
task=ehr data_dir={tmp}/nope | --data_dir=.*nope must be a folder that can be read, found: no such
num_clients=5000 | 5000 clients
device=gpu:77 | --device must be 'auto', .* found 'gpu:77'
initial_gamma=6.0 | --initial_gamma must be at most 5.0, found 6.0
{quad} use_ce=False quadruplet_weight=0 | --quadruplet_weight must be positive with --use_ce=False
{quad} algorithm=moon temperature=0 | --temperature must be above 0, found 0\.0\.$
{quad} data_fraction=0.3 num_clients=3 partition=equal num_examples=432 | --num_examples must be in 1\.\.431, found 432\.$
{quad} use_ce=False stop_after=1 stop_metric=global_loss | --stop_metric must be a metric that this run measures, found 'global_loss', which
test_fraction=0 stop_after=1 | --stop_metric must be a metric .* found 'client_accuracy_mean'
preset=fedakd_digits variant=single_dist stop_after=1 stop_metric=train_loss | --stop_metric must be a metric .* found 'train_loss'
{quad} data_fraction=0.3 num_clients=300 | 300 clients .* found 431
"""  # noqa: E501


def test_bad_input_is_one_sentence_before_anything_is_trained(
  finished, tmp_path, monkeypatch
):
  monkeypatch.setattr(tf.keras.utils, 'get_file', _offline)
  (tmp_path / 'file').touch()
  (tmp_path / 'mnist.npz').write_bytes(b'PK\x03\x04 and no more')
  quad = 'preset=fedquad_digits model=mlp_cffl_mnist'
  rows = _REFUSED.format(whole=finished[0], tmp=tmp_path, quad=quad).strip()
  rows = [row.split(' | ') for row in rows.splitlines()]
  # Servers that validate.
  rows += [
    (
      f'preset={preset} algorithm={algorithm} {flag}=0',
      f'--{flag} must be above 0 for {algorithm}, whose server validates on'
      r' that part, found 0\.0\.$',
    )
    for preset, flag in (
      ('cffl_digits', 'validation_fraction'),
      ('fedakd_digits', 'holdout_fraction'),
    )
    for algorithm in ('cffl', 'fed_ave', 'fed_sac')
  ]
  for line, message in rows:
    values = dict(value.split('=') for value in line.split())
    with pytest.raises(SystemExit) as error:
      digits_run.main(**{'output_dir': tmp_path / 'run', **values})
    found = str(error.value)
    assert re.match(f'Error: .*{message}', found), (line, found)
    assert '\n' not in found
    assert not (tmp_path / 'run/metrics.csv').exists(), line


def test_the_directory_of_a_run_is_named_by_preset_and_method(
  tmp_path, monkeypatch
):
  monkeypatch.chdir(tmp_path)
  for values, folder in (
    ({'num_clients': 5000}, 'fedaboost_digits/fedaboost'),
    (
      {'preset': None, 'num_clients': 5000, 'algorithm': 'ditto'},
      'digits/ditto',
    ),
  ):
    with pytest.raises(SystemExit, match='5000 clients'):
      digits_run.main(None, **values)
    assert (tmp_path / 'runs' / folder).is_dir()


def _offline(*_, **__):
  raise OSError('no network')
