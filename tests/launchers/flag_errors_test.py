"""Mistakes on a command line: one sentence each, with the flag's own name."""

import re
from unittest import mock

from absl import flags
import pytest

from benchmarks import run
from tff_fair.launchers import cli
from tff_fair.launchers import reproduce
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import errors

# Launcher, arguments | the whole message.
_REFUSED = r"""
train --rounds=1e3 | --rounds must be an integer, found '1e3'.
train --rounds 1.5 | --rounds must be an integer, found '1.5'.
train --shift=x: y | --shift must be a number, found 'x: y'.
train --distances=maybe | --distances must be true or false, found 'maybe'.
train --nodistances=3 | --nodistances must be given without a value, found '3'.
train --rounds | --rounds must have a value, found none.
train --flagfile | --flagfile must have a value, found none.
train --flagfile={tmp}/no | --flagfile={tmp}/no must be a file of flags, found: No such file or directory.
train --flagfile={tmp} | --flagfile={tmp} must be a file of flags, found: Is a directory.
train --flagfile={tmp}/bytes | --flagfile must be a file of flags, found one that is not text.
train --nofoo | --nofoo is not a flag of this program.
train --dirichlet=1 | --dirichlet is not a flag of this program. Did you mean --dirichlet_alpha or --dirichlet_remainder?
train --algorithm=fedaboots | --algorithm must be a known name, found 'fedaboots'. Did you mean fedaboost?
train --algorithm=FedProx | --algorithm must be a known name, found 'FedProx'. Did you mean fed_prox?
train --preset=fedaboost_digit | --preset must be a known name, found 'fedaboost_digit'. Did you mean fedaboost_digits?
train --task=mnits | --task must be a known name, found 'mnits'. Did you mean mnist?
train --model=mlp_fedaboots | --model must be a known name, found 'mlp_fedaboots'. Did you mean mlp_fedaboost?
train --runtime=remote | --runtime must be one of device, native, cluster, found 'remote'.
train --runtime= | --runtime must be one of device, native, cluster, found ''.
reproduce --table=cffl_tabel1 | --table must be a known name, found 'cffl_tabel1'. Did you mean cffl_table1?
reproduce --seeds=two | --seeds must be a positive integer, found 'two'.
benchmarks --client_threads=0 | --client_threads must be a positive integer, found '0'.
"""  # noqa: E501
_LAUNCHERS = {
  'train': train_flags,
  'reproduce': reproduce,
  'benchmarks': run,
}


def test_what_no_command_line_can_hold(tmp_path):
  (tmp_path / 'bytes').write_bytes(b'\x80\xff')
  for row in _REFUSED.format(tmp=tmp_path).strip().splitlines():
    command, message = row.split(' | ')
    launcher, first, *rest = re.split(r' (?!y)', command)
    flag_values = flags.FlagValues()
    _LAUNCHERS[launcher].define_flags(flag_values)
    with pytest.raises(SystemExit) as error:
      cli.parse_flags([launcher, first, *rest], flag_values)
    assert error.value.code == f'Error: {message}', row


def test_errors_of_arguments_are_said_of_their_flags():
  for sentence, expected in (
    ('seed must be at least 0, found -1.', '--data_seed must be at least 0,'),
    ('shift must be finite', '--shift must be finite'),
    (
      "remainder='drop' must leave num_clients * min_samples = 4 examples",
      "--dirichlet_remainder='drop' must leave --num_clients * --min_samples",
    ),
    ('The split must be', 'The split must be'),
    ("The file 'num_clients/x.num_clients'", "The file 'num_clients/x.num_cl"),
  ):
    assert building.with_flags(sentence).startswith(expected), sentence
  for algorithm, sentence, expected in (
    ('fedaboost', 'seed must be', '--client_seed must be'),
    ('fedaboost', 'max_gamma must be', '--max_gamma must be'),
    ('fedquad', 'margins must be', 'margins must be'),
    ('ditto', 'client_weight_decay must', '--client_weight_decay must'),
  ):
    flag_values = train_flags.parse([f'--algorithm={algorithm}'])
    settings = {n: flag_values[n].value for n in train_flags.FLAG_NAMES}
    with pytest.raises(errors.RunError, match=f'^{expected}'):
      building.build(mock.Mock(side_effect=ValueError(sentence)), settings)
