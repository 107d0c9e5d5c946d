"""The launcher, end to end on the embedded digits."""

import contextlib
import functools
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from launchers import train
from launchers.options import train_flags
from launchers.runs import distances
from tests import forked
from tests.tasks import adult_file
from tests.tasks import emnist_file

_ROOT = pathlib.Path(__file__).parents[2]
_SMALL = {
  'preset': 'fedaboost_digits',
  'rounds': 2,
  'num_clients': 6,
  'local_epochs': 1,
}
_TABLES = ('metrics.csv', 'clients.csv', 'reports.csv', 'client_scores.csv')


def _main(output_dir, **values):
  values = {**_SMALL, 'output_dir': output_dir, **values}
  arguments = [f'--{n}={v}' for n, v in values.items() if v is not None]
  train.main(['train'], train_flags.parse(arguments))


def _run_fresh(*arguments):
  return subprocess.run(
    [sys.executable, '-m', 'launchers.train', *arguments],
    cwd=_ROOT,
    capture_output=True,
    text=True,
    timeout=300,
    check=False,
  )


@pytest.mark.parametrize('algorithm', ['fed_avg', 'ditto', 'fedaboost'])
def test_writes_what_the_readme_promises(algorithm, tmp_path, capsys):
  _main(tmp_path, algorithm=algorithm)
  written = {p.name for p in tmp_path.iterdir()}
  assert written == {
    'checkpoints', 'client_scores.csv', 'clients.csv', 'flags.txt',
    'metrics.csv', 'plots', 'reports.csv', 'summary.json', 'tensorboard',
  }  # fmt: skip
  metrics = pd.read_csv(tmp_path / 'metrics.csv')
  assert metrics['round'].tolist() == [1, 2]
  assert metrics['num_clients'].tolist() == [3, 3]
  assert metrics['global_f1'].between(0, 1).all()
  clients = pd.read_csv(tmp_path / 'clients.csv')
  assert clients['client_id'].tolist() == list(range(6))
  assert clients['num_test'].sum() == pytest.approx(0.2 * 1797, abs=6)
  reports = pd.read_csv(tmp_path / 'reports.csv')
  assert len(reports) == 6
  scores = pd.read_csv(tmp_path / 'client_scores.csv')
  assert scores['round'].tolist() == [1] * 6 + [2] * 6
  for name in ('client_id', 'accuracy', 'f1', 'loss'):
    assert scores[name].tolist()[6:] == clients[name].tolist()
  summary = json.loads((tmp_path / 'summary.json').read_text())
  assert summary['algorithm'] == algorithm
  for name, value in summary['final'].items():
    assert value == pytest.approx(metrics[name].iloc[-1]), name
  assert summary['client_f1_variance_window']['mean'] == pytest.approx(
    metrics['client_f1_variance'].mean()
  )
  plots = {p.name for p in (tmp_path / 'plots').iterdir()}
  own = {'client_accuracy.png'} if algorithm == 'ditto' else set()
  assert plots == {'learning_curves.png', 'client_f1.png'} | own
  assert list((tmp_path / 'tensorboard').iterdir())
  said = capsys.readouterr().out
  assert f'{algorithm} on digits: 6 clients, 2 rounds' in said
  assert re.search(r'after 2 rounds:\n  global_accuracy +0\.\d{4}\n', said)
  if algorithm == 'fedaboost':
    assert {'alpha', 'aggregated', 'weight', 'gamma'} <= set(reports)
    assert {'weight', 'gamma'} <= set(clients)
  if algorithm == 'ditto':
    assert {'personal_f1', 'train_personal_loss'} <= set(metrics)


_CFFL = {'preset': 'cffl_digits', 'num_examples': 200, 'num_clients': 4}
_OTHERS_OF_CFFL = ['standalone', 'round_robin_fed_avg', 'dssgd', 'fed_avg']


class TestServerTestData:
  """CFFL's experiments: one test set, at the server, for all clients."""

  def test_cffl(self, tmp_path, capsys):
    _main(tmp_path, **_CFFL, free_riders=1)
    clients = pd.read_csv(tmp_path / 'clients.csv')
    assert clients['client_id'].tolist() == [0, 1, 2, 3, 4]
    assert clients['num_test'].tolist() == [359] * 5
    assert clients['num_train'].iloc[4] == clients['num_classes'].iloc[4] == 0
    assert clients['num_train'].sum() == 200
    metrics = pd.read_csv(tmp_path / 'metrics.csv')
    assert metrics['num_clients'].tolist() == [5, 5]
    honest = clients['accuracy'][:4]
    last = metrics.iloc[-1]
    assert last['client_accuracy_max'] == honest.max()
    assert last['client_accuracy_mean'] == pytest.approx(honest.mean())
    assert honest.mean() != pytest.approx(clients['accuracy'].mean())
    reports = pd.read_csv(tmp_path / 'reports.csv')
    assert {'reputation', 'num_allocated', 'loss'} <= set(reports)
    assert reports['client_id'].tolist() == [0, 1, 2, 3, 4] * 2
    after = reports[reports['round'] == 2]
    for name in ('reputation', 'reputable', 'validation_accuracy'):
      assert clients[name].tolist() == after[name].tolist()
    assert clients['reputation'].sum() == pytest.approx(1)
    plots = {p.name for p in (tmp_path / 'plots').iterdir()}
    assert {'client_accuracy.png', 'reputation.png'} <= plots
    assert re.search(r'client_accuracy_max +0\.\d{4}', capsys.readouterr().out)

  def test_what_isolation_takes_is_counted_and_shown(self, tmp_path, capsys):
    # Nobody but the best is above half of all reputation for long.
    _main(tmp_path, **_CFFL, threshold_absolute=0.5)
    reports = pd.read_csv(tmp_path / 'reports.csv')
    isolated = 4 - reports['reputable'][reports['round'] == 2].sum()
    assert isolated == 3
    said = capsys.readouterr().out
    assert f'aggregator_num_isolated {isolated} in all rounds' in said

  @pytest.mark.parametrize('algorithm', _OTHERS_OF_CFFL)
  def test_baselines(self, algorithm, tmp_path):
    _main(tmp_path, **_CFFL, algorithm=algorithm)
    clients = pd.read_csv(tmp_path / 'clients.csv')
    assert clients['num_test'].tolist() == [359] * 4
    # The clients of FedAvg end up with one model, those of the others do not.
    distinct = 1 if algorithm == 'fed_avg' else 4
    assert clients['loss'].nunique() == distinct
    metrics = pd.read_csv(tmp_path / 'metrics.csv')
    assert metrics['num_clients'].tolist() == [4, 4]
    assert metrics['num_examples'].tolist() == [200, 200]
    assert len(pd.read_csv(tmp_path / 'reports.csv')) == 8

  def test_a_round_of_clients_in_turn_is_a_pass_over_all(self, tmp_path):
    _main(tmp_path, **_CFFL, algorithm='round_robin_fed_avg')
    reports = pd.read_csv(tmp_path / 'reports.csv')
    metrics = pd.read_csv(tmp_path / 'metrics.csv')
    for number, part in reports.groupby('round'):
      assert part['client_id'].tolist() == [0, 1, 2, 3]
      mean = np.average(part['loss'], weights=part['num_examples'])
      assert metrics['train_loss'][number - 1] == pytest.approx(mean)

  def test_the_passes_decay_the_learning_rate(self, tmp_path):
    # From the second pass on the rate is 0.
    _main(tmp_path, **_CFFL, algorithm='dssgd', learning_rate_decay=0)
    scores = pd.read_csv(tmp_path / 'client_scores.csv')
    first, second = (scores[scores['round'] == n] for n in (1, 2))
    # What the last client of the first pass took home, all have in the end.
    assert set(second['loss']) == {first['loss'].iloc[-1]}


_COREFED = {'preset': 'corefed_digits', 'eval_every': 2, 'rounds': 3}


class TestDistances:
  """CoRe-Fed's experiments: how far the clients are apart."""

  @pytest.mark.parametrize(
    'algorithm',
    [
      'corefed',
      'fed_avg',
      'ditto',
      'q_fed_avg',
      'fed_mgda',
      'fed_mdfg',
      'fed_rdn',
      'fedquad',
      'moon',
    ],
  )
  def test_are_in_the_rows_of_evaluations(self, algorithm, tmp_path):
    values = dict(_COREFED)
    if algorithm == 'fed_mdfg':
      values['local_epochs'] = None
    _main(tmp_path, **values, algorithm=algorithm)
    metrics = pd.read_csv(tmp_path / 'metrics.csv')
    summary = json.loads((tmp_path / 'summary.json').read_text())
    for name in distances.COLUMNS:
      assert metrics[name].notna().tolist() == [False, True, True]
      assert (metrics[name][1:] > 0).all()
      assert summary['final'][name] == metrics[name].iloc[-1]
    assert (metrics['parameters_d_cosine'][1:] < np.pi / 2).all()
    clients = pd.read_csv(tmp_path / 'clients.csv')
    away = (clients['accuracy'] - clients['accuracy'].mean()).abs().sum()
    found = metrics['accuracy_d_manhattan'].iloc[-1]
    assert found == pytest.approx(away)
    plots = {p.name for p in (tmp_path / 'plots').iterdir()}
    assert {'parameters_distances.png', 'embedding_distances.png'} <= plots

  def test_change_nothing_else(self, tmp_path):
    _main(tmp_path / 'with', **_COREFED)
    _main(tmp_path / 'without', **_COREFED, distances=False)
    plain = pd.read_csv(tmp_path / 'without/metrics.csv')
    assert not set(distances.COLUMNS) & set(plain)
    measured = pd.read_csv(tmp_path / 'with/metrics.csv')
    pd.testing.assert_frame_equal(measured[plain.columns], plain)
    for name in ('clients.csv', 'reports.csv', 'client_scores.csv'):
      first, second = (tmp_path / run / name for run in ('with', 'without'))
      assert first.read_bytes() == second.read_bytes()

  def test_are_the_same_in_a_round_after_a_stop(self, tmp_path):
    values = {**_COREFED, 'eval_every': 1, 'checkpoint_every': 1}
    _main(tmp_path, **values)
    metrics = tmp_path / 'metrics.csv'
    expected = metrics.read_bytes()
    shutil.rmtree(tmp_path / 'checkpoints/round_3')
    _main(tmp_path, **values)
    assert metrics.read_bytes() == expected

  def test_are_undefined_where_nobody_moves(self, tmp_path):
    # From the second round on the rate is 0.
    _main(tmp_path, **_COREFED, learning_rate_decay=0, algorithm='fed_avg')
    metrics = pd.read_csv(tmp_path / 'metrics.csv')
    assert metrics['parameters_d_cosine'].isna().all()
    summary = json.loads((tmp_path / 'summary.json').read_text())
    assert summary['final']['embedding_d_manhattan'] is None
    assert summary['final']['accuracy_d_manhattan'] > 0


def test_fed_rdn_starts_from_the_weights_of_the_others(tmp_path):
  # With a rate of 0 they stay as they were.
  values = {**_COREFED, 'client_learning_rate': 0, 'rounds': 1}
  for algorithm in ('fed_avg', 'fed_rdn'):
    _main(tmp_path / algorithm, **values, algorithm=algorithm)
  expected = _variables(tmp_path / 'fed_avg', 1)
  for name, value in _variables(tmp_path / 'fed_rdn', 1).items():
    np.testing.assert_array_equal(value, expected[name])
  # What is different is what the model is shown.
  losses = [
    pd.read_csv(tmp_path / algorithm / 'metrics.csv')['global_loss'].item()
    for algorithm in ('fed_avg', 'fed_rdn')
  ]
  assert losses[0] != losses[1]


@pytest.fixture(scope='module', name='data_dir')
def _data_dir(tmp_path_factory):
  """Small files in the formats of the real ones."""
  path = tmp_path_factory.mktemp('data')
  rng = np.random.default_rng(0)
  for name, shape, num_classes in (
    ('mnist', [28, 28], 10),
    ('cifar10', [32, 32, 3], 10),
    ('cifar100', [32, 32, 3], 100),
  ):
    arrays = {}
    for part, size in (('train', 60), ('test', 20)):
      arrays[f'x_{part}'] = rng.integers(0, 256, [size, *shape], np.uint8)
      arrays[f'y_{part}'] = np.arange(size) % num_classes
    np.savez(path / f'{name}.npz', **arrays)
  emnist_file.write(path / 'emnist_all.sqlite')
  adult_file.write(
    path, adult_file.lines(60, 60), adult_file.lines(20, 20, first_weight=500)
  )
  return path


@pytest.mark.parametrize(
  ('preset', 'algorithm'),
  [
    ('fedaboost_mnist', 'fedaboost'),
    ('fedaboost_mnist_without_boosting', 'fedaboost'),
    ('fedaboost_mnist', 'ditto'),
    ('fedaboost_femnist_1', 'fed_avg'),
    ('fedaboost_femnist_2', 'fedaboost'),  # AdamW, batch norm, dropout.
    ('fedaboost_femnist_2', 'ditto'),
    ('fedaboost_cifar_20', 'fedaboost'),
    ('cffl_mnist_size_p5', 'cffl'),
    ('cffl_mnist_class_p5', 'cffl'),
    ('cffl_adult_size_p5', 'dssgd'),
    ('cffl_freerider', 'cffl'),
    ('corefed_fmnist', 'corefed'),
    ('corefed_fmnist', 'fed_rdn'),
    ('corefed_fmnist_full_01', 'q_fed_avg'),
    ('corefed_cifar', 'corefed'),  # Dropout.
    ('corefed_ablation_refed', 'corefed'),
    ('fedquad_cifar10_a05_c10', 'fedquad'),  # Batch norm at each role.
    ('fedquad_cifar100_iid_c10', 'moon'),
  ],
)
def test_presets_run(preset, algorithm, data_dir, tmp_path):
  others = {}
  if preset.startswith('cffl'):
    others = {'num_examples': 40}
  elif preset.startswith('corefed') and 'cifar' not in preset:
    others = {'task': 'mnist'}  # It stands in for Fashion-MNIST.
  _main(
    tmp_path,
    preset=preset,
    algorithm=algorithm,
    data_dir=data_dir,
    num_clients=4,
    rounds=1,
    local_epochs=1,
    **others,
  )
  summary = json.loads((tmp_path / 'summary.json').read_text())
  assert summary['algorithm'] == algorithm
  assert 0 <= summary['final']['global_accuracy'] <= 1
  assert summary['dropped']['num_rejected_clients'] == 0


def test_evaluates_as_often_as_told_and_always_at_the_end(tmp_path):
  _main(tmp_path, rounds=5, eval_every=2)
  metrics = pd.read_csv(tmp_path / 'metrics.csv')
  evaluated = metrics['round'][metrics['global_f1'].notna()]
  assert evaluated.tolist() == [2, 4, 5]


@pytest.mark.parametrize('values', [{}, _CFFL])
def test_a_finished_run_is_shown_again_and_not_changed(
  values, tmp_path, capsys
):
  _main(tmp_path, **values)
  before = {name: (tmp_path / name).read_bytes() for name in _TABLES}
  _main(tmp_path, **values)
  assert 'going on after round 2' in capsys.readouterr().out
  for name, content in before.items():
    assert (tmp_path / name).read_bytes() == content


def test_runs_are_drawn_beside_each_other(tmp_path, capsys):
  _main(tmp_path / 'a', algorithm='fed_avg')
  _main(tmp_path / 'b', compare_with=tmp_path / 'a')
  assert 'drawn:' in capsys.readouterr().out
  alone = (tmp_path / 'a/plots/client_f1.png').stat().st_size
  assert (tmp_path / 'b/plots/client_f1.png').stat().st_size > alone


def test_what_was_dropped_is_shown(tmp_path, capsys):
  # So large a step that every client's update overflows.
  _main(tmp_path, client_learning_rate=1e38)
  said = capsys.readouterr().out
  assert re.search(r'num_rejected_clients +6 in all rounds', said)
  summary = json.loads((tmp_path / 'summary.json').read_text())
  assert summary['dropped']['num_rejected_clients'] == 6
  assert summary['dropped']['aggregator_fallback'] == 2


def test_flags_file_repeats_the_run(tmp_path):
  small = [f'--{name}={value}' for name, value in _SMALL.items()]
  first = forked.run(
    'launchers.train', *small, f'--output_dir={tmp_path / "a"}'
  )
  assert first.returncode == 0, first.stderr
  text = (tmp_path / 'a/flags.txt').read_text()
  (tmp_path / 'flags').write_text(text.replace('/a\n', '/b\n'))
  # So is a fork like a Python that imports TensorFlow itself.
  second = _run_fresh(f'--flagfile={tmp_path / "flags"}')
  assert second.returncode == 0, second.stderr
  for name in _TABLES:
    found, expected = (tmp_path / run / name for run in 'ba')
    assert found.read_bytes() == expected.read_bytes()


def _variables(run, round_number):
  """The arrays of a checkpoint."""
  path = str(run / f'checkpoints/round_{round_number}/variables/variables')
  reader = tf.train.load_checkpoint(path)
  return {
    name: reader.get_tensor(name)
    for name in reader.get_variable_to_shape_map()
    if 'CHECKPOINTABLE' not in name
  }


_LONG = {
  'fedaboost': ['--preset=fedaboost_digits'],
  # All that CFFL's state holds: own models, shadows, isolation.
  'cffl': ['--preset=cffl_digits', '--pretrain', '--free_riders=1'],
  # Gradients of clients that were here lately, and distances.
  'corefed': ['--preset=corefed_digits'],
}


@pytest.fixture(scope='module', name='whole_run')
def _whole_run(tmp_path_factory):
  """An unbroken run of each method, made when it is first asked for."""

  @functools.cache
  def run(method):
    path = tmp_path_factory.mktemp('whole')
    _run_long(method, path)
    return path

  return run


def _long(method, output_dir):
  others = ['--rounds=40', '--eval_every=2', f'--output_dir={output_dir}']
  return [*_LONG[method], *others]


def _run_long(method, output_dir):
  train.main(['train'], train_flags.parse(_long(method, output_dir)))


@pytest.mark.parametrize(
  ('method', 'number'),
  [
    ('fedaboost', signal.SIGKILL),
    ('fedaboost', signal.SIGINT),
    ('fedaboost', signal.SIGTERM),
    ('cffl', signal.SIGKILL),
    ('corefed', signal.SIGKILL),
  ],
)
def test_a_killed_run_resumes_to_the_same_result(
  tmp_path, method, number, whole_run, capsys
):
  whole = whole_run(method)
  killed = tmp_path / 'killed'
  metrics = killed / 'metrics.csv'
  process = forked.start('launchers.train', *_long(method, killed))
  deadline = time.monotonic() + 200
  while not metrics.exists() or metrics.read_text().count('\n') < 15:
    assert process.returncode is None and time.monotonic() < deadline
    time.sleep(0.01)
  process.send_signal(number)
  assert process.wait(60) != 0
  rows = metrics.read_text().count('\n') - 1
  assert 13 < rows < 40  # In the middle.
  if number != signal.SIGKILL:
    assert re.search(r'Error: stopped after round \d+ of 40', process.stderr)
    assert 'Traceback' not in process.stderr
    # Saved where it stood, not only at a multiple of ten.
    saved = {p.name for p in (killed / 'checkpoints').iterdir()}
    assert f'round_{rows}' in saved or f'round_{rows - 1}' in saved
  _run_long(method, killed)
  assert 'going on after round' in capsys.readouterr().out
  for name in _TABLES:
    assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
  expected = _variables(whole, 40)
  assert len(expected) > 4
  for name, value in _variables(killed, 40).items():
    np.testing.assert_array_equal(value, expected[name])


def test_help_does_not_import_tensorflow():
  shown = _run_fresh('--help')
  assert '--[no]boosting' in shown.stdout and '--boost_rate' in shown.stdout
  script = 'import sys, launchers.train; print("tensorflow" in sys.modules)'
  command = [sys.executable, '-c', script]
  assert subprocess.check_output(command, cwd=_ROOT, text=True) == 'False\n'


class TestBadInput:
  """One clear sentence and a failure, before anything is trained."""

  @pytest.mark.parametrize(
    ('argument', 'message'),
    [
      ('--algorithm=fedprox', 'flag --algorithm=fedprox: value should be one'),
      ('--task=svhn', 'flag --task=svhn: value should be one of <digits|mnist'),
      ('--preset=cffl', 'flag --preset=cffl: value should be one of <cffl_ad'),
      ('--client_fraction=0', '--client_fraction must be above 0 and at most'),
      ('--rounds=-1', '--rounds must be at least 1, found -1'),
      ('--no_such_flag=1', "Unknown command line flag 'no_such_flag'"),
      ('--model_seed=4294967296', '--model_seed must be at least 0 and at '),
      ('--weight_sign=0', '--weight_sign must be -1 or 1'),
      ('digits', "every argument must be a flag, found 'digits'"),
    ],
  )
  def test_refused_by_the_command_line(self, argument, message):
    result = _run_fresh(argument)
    assert result.returncode != 0
    assert message in result.stderr
    assert 'Traceback' not in result.stderr

  def _fails(self, output_dir, message, **values):
    with pytest.raises(SystemExit, match=message) as error:
      _main(output_dir, **values)
    assert '\n' not in str(error.value)
    assert not (pathlib.Path(output_dir) / 'metrics.csv').exists()

  def test_flag_that_the_method_ignores(self, tmp_path):
    self._fails(
      tmp_path,
      'Error: --boost_rate must not be given with --algorithm=fed_avg',
      algorithm='fed_avg',
      boost_rate=0.1,
    )

  def test_method_that_needs_validation_data(self, tmp_path):
    self._fails(
      tmp_path,
      'Error: holdout_fraction must be above 0 for cffl, whose server validates'
      ' on that part, found 0.0.',
      algorithm='cffl',
      holdout_fraction=0,
    )

  def test_other_flags_in_the_same_directory(self, tmp_path):
    _main(tmp_path)
    with pytest.raises(SystemExit, match='--rounds is 2 there and 3 here'):
      _main(tmp_path, rounds=3)

  def test_directory_that_cannot_be_written(self, tmp_path):
    (tmp_path / 'file').write_text('')
    self._fails(
      tmp_path / 'file/run',
      'must be a directory that can be written, found: Not a directory',
    )

  def test_comparison_with_what_is_no_run(self, tmp_path):
    self._fails(
      tmp_path / 'run',
      '--compare_with=.* must be the directory of a finished run',
      compare_with=tmp_path,
    )

  def test_missing_data_file(self, tmp_path):
    self._fails(
      tmp_path / 'run',
      "Error: The data file 'cifar10.npz'",
      preset='fedaboost_cifar_20',
      data_dir=tmp_path,
    )

  def test_truncated_data_file(self, tmp_path):
    (tmp_path / 'mnist.npz').write_bytes(b'PK\x03\x04 and no more')
    self._fails(
      tmp_path / 'run',
      "Error: The data file '.*mnist.npz' must hold",
      preset='fedaboost_mnist',
      data_dir=tmp_path,
    )

  def test_setting_that_does_not_fit_the_data(self, tmp_path):
    self._fails(tmp_path, 'Error: 5000 clients', num_clients=5000)

  def test_a_device_that_is_not_there(self, tmp_path):
    message = "Error: --device must be 'auto', .* found 'gpu:77'"
    self._fails(tmp_path, message, device='gpu:77')

  def test_setting_that_the_builder_refuses(self, tmp_path):
    self._fails(
      tmp_path,
      'Error: initial_gamma must be at most 5.0, found 6.0',
      initial_gamma=6.0,
    )

  def test_damaged_checkpoint_falls_back_and_says_so(self, tmp_path):
    _main(tmp_path, rounds=4, checkpoint_every=2)
    expected = (tmp_path / 'clients.csv').read_bytes()
    data = tmp_path / 'checkpoints/round_4/variables'
    for path in data.iterdir():
      path.write_bytes(b'')
    with pytest.warns(UserWarning, match='checkpoint of round 4 cannot be re'):
      _main(tmp_path, rounds=4, checkpoint_every=2)
    assert (tmp_path / 'clients.csv').read_bytes() == expected


@pytest.fixture(autouse=True)
def _default_runtime_again():
  """`main` sets its own context; the other tests expect theirs afterwards."""
  with contextlib.ExitStack() as stack:
    from tff_fair import runtime

    stack.callback(runtime.set_execution_context, 'device', device='cpu')
    yield
