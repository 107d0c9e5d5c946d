"""Dry runs: bytes by hand, for a small model and small messages."""

import pathlib
import re
import shlex

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import runtime
from tff_fair import splits
from tff_fair import tasks
from tff_fair.launchers import train
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import dry_run
from tff_fair.launchers.runs import messages
from tff_fair.tensors import client_table

pytestmark = pytest.mark.usefixtures('default_runtime')

_PAGE = pathlib.Path(__file__).parents[3] / 'docs' / 'experiments.md'


def _settings(*arguments):
  flag_values = train_flags.parse(list(arguments))
  return settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)


def _model():
  """29 parameters, 6 of them moving averages; 8 outputs of layers."""
  return tf.keras.Sequential(
    [
      tf.keras.layers.Input([2]),
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(3),  # 9
      tf.keras.layers.BatchNormalization(),  # 6 and 6
      tf.keras.layers.Dense(2),  # 8
    ]
  )


@pytest.fixture(name='small')
def _small(monkeypatch):
  """Runs get four clients with 5, 1, 2 and 0 examples of 12 bytes."""

  def split(start, train, holdout):
    train, holdout = start + np.arange(train), start + 3 + np.arange(holdout)
    return splits.Split(train, holdout, np.arange(0))

  task = tasks.Task(
    name='small',
    num_classes=2,
    model_fn=_model,
    data=tasks.Examples(np.zeros([10, 2], np.float32), np.zeros(10, np.int32)),
    splits=(split(0, 3, 2), split(5, 1, 0), split(6, 1, 1), split(9, 0, 0)),
  )
  monkeypatch.setattr(building, 'build_task', lambda settings: task)


def _numbers(*arguments):
  """The numbers of a dry run by their names, as printed."""
  text = dry_run.to_text(_settings(*arguments))
  return dict(re.findall(r'^  (\S.*?)  +(\S.*)$', text, re.MULTILINE))


@pytest.mark.usefixtures('small')
def test_the_numbers_of_fed_avg_by_hand():
  arguments = (
    *('--algorithm=fed_avg', '--client_fraction=0.5', '--batch_size=5'),
    *('--client_optimizer=adam', '--dry_run'),
  )
  # With the round and the seed; back come id, examples, rejected, clipped and
  # loss, and as sums the model, a weight for each of its two parts, two
  # metrics and five counts.
  down, gathered, summed = (29 + 3) * 4, 5 * 4, (29 + 2 + 2 + 5) * 4
  # The round, the seed, and the learning rate.
  state = 29 * 4 + 3 * 4 + 4
  server = 2 * state + 2 * gathered + summed
  client = sum(
    (
      2 * 29 * 4,  # Weights, before and after a step.
      23 * 4,  # Gradients.
      2 * 23 * 4 + 5 * 4,  # Two moments, the step, four hyper-parameters.
      gathered + summed,
      5 * 12,  # The examples of the largest client.
      4 * 5 * (2 + 2 * 8),  # Inputs, and outputs of layers twice.
    )
  )
  for clients in (0, 2, 3):
    memory = (server + clients * client) / 1e9
    found = _numbers(*arguments, f'--device_memory_gb={memory:.9f}')
    (fit,) = (n for name, n in found.items() if name.startswith('clients that'))
    assert fit == str(clients)
  assert found == {
    'trainable parameters': '23',
    'other parameters': '6',
    # Two of the three clients with data.
    'down, to all clients in a round': f'{2 * down} B',
    'up, from all clients in a round': f'{2 * (gathered + summed)} B',
    'down, to each client': f'{down} B',
    'up, from each client': f'{gathered + summed} B',
    'state of the server': f'{state} B',
    'memory of the server in a round': f'{server} B',
    'memory of a client, an estimate': f'{client / 1000:.1f} kB'
    if client > 999
    else f'{client} B',
    next(n for n in found if n.startswith('clients that fit into')): '3',
  }


def test_messages_are_those_of_the_operators():
  row = tff.TensorType(np.float32, [3])
  state = tff.types.to_type([tff.TensorType(np.float64, [7]), np.int32])
  gather = client_table.build_gather(row)

  @tff.tensorflow.computation(state, np.int32)
  def select(state, key):
    return tf.cast(state[0][:3], tf.float32) + tf.cast(key, tf.float32)

  @tff.tensorflow.computation(tff.SequenceType(row))
  def first(rows):
    return rows.reduce(tf.zeros([3]), lambda a, b: a + b)

  @tff.federated_computation(
    tff.FederatedType(state, tff.SERVER),
    tff.FederatedType(tff.TensorType(np.int32, [2]), tff.CLIENTS),
  )
  def next_round(state, keys):
    sent = tff.federated_broadcast(state)
    number = tff.federated_value(9, tff.SERVER)
    rows = tff.federated_map(
      first, tff.federated_select(keys, number, state, select)
    )
    gathered = gather(rows)
    again = tff.federated_broadcast(gathered)
    return gathered, tff.federated_sum(rows), sent, again

  found = messages.count_messages(next_round, cohort_size=5)
  assert found == messages.Messages(
    broadcast=7 * 8 + 4 + 5 * 3 * 4,  # The second has a row for each client.
    row=2 * 3 * 4,  # Two rows.
    gathered=3 * 4,
    summed=3 * 4,
  )
  # Rows of the client table count, too.
  assert (found.down, found.up) == (144, 24)


def test_units():
  for number, text in (
    (0, '0 B'), (999, '999 B'), (999.96, '1.0 kB'), (1234, '1.2 kB'),
    (999_949, '999.9 kB'), (999_950, '1.0 MB'), (2.5e20, '250000000.0 TB'),
  ):  # fmt: skip
    assert dry_run.format_bytes(number) == text, number


@pytest.mark.usefixtures('runtime_as_before', 'small')
def test_the_launcher_prints_it_and_writes_nothing(
  tmp_path, monkeypatch, capsys
):
  monkeypatch.chdir(tmp_path)
  train.main(
    ['train'],
    train_flags.parse(
      ['--algorithm=fed_avg', '--dry_run', '--device_memory_gb=0.5']
    ),
  )
  printed = capsys.readouterr().out
  assert '4 clients, 3 in a round. Nothing is trained.\n' in printed
  assert re.search(r'trainable parameters +23\n', printed)
  assert 'clients that fit into 0.5 GB at once' in printed
  assert not list(tmp_path.iterdir())


@pytest.mark.full
def test_methods_of_every_kind_have_numbers(monkeypatch):
  # None of them trains, not even the clients alone that FedSAC starts with.
  def refuse(*_, **__):
    raise AssertionError('Something was run.')

  context = runtime.create_execution_context('device', device='cpu')
  monkeypatch.setattr(type(context), 'invoke', refuse)
  # Statistics, contributions, validation, turns, two optimisers, a dictionary.
  for name in ('fed_rdn', 'fed_sac', 'cffl', 'dssgd', 'ditto', 'fedquad'):
    settings = _settings('--num_clients=3', f'--algorithm={name}')
    with tff.framework.get_context_stack().install(context):
      lines = dry_run.to_text(settings).splitlines()
    assert '3 clients, 3 in a round.' in lines[0], name
    assert len(lines) == 11 and not re.search(r' 0 (k|M)?B$', lines[3])


@pytest.mark.full
@pytest.mark.usefixtures('runtime_as_before')
def test_the_page_shows_what_is_printed(capsys):
  command, shown = re.search(
    r'\n```sh\nuv run python -m launchers.train (.*--dry_run.*)\n```\n'
    r'(?s:.*?)\n```text\n(?s:(.*?))```\n',
    _PAGE.read_text(),
  ).groups()
  train.main(['train'], train_flags.parse(shlex.split(command)))
  assert capsys.readouterr().out == shown
