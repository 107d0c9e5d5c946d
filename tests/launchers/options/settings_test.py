"""From flags to settings: what wins, what is refused, and the flags file."""

import os
import re

import pytest

from tests import limits
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import settings
from tff_fair.launchers.options import train_flags

_MARGINS = 'fedquad_ablation_b05_m5_m05'


def _resolve(*arguments):
  flag_values = train_flags.parse(list(arguments))
  return settings.resolve(flag_values, train_flags.FLAG_NAMES)


def _refusal(arguments):
  """The message of the error, and nothing if there is none."""
  try:
    _resolve(*arguments)
  except settings.SettingsError as error:
    return str(error)
  return ''


def test_defaults_without_the_flags_of_other_methods():
  found = _resolve()
  assert found['algorithm'] == 'fedaboost'
  assert found['boost_rate'] == 0.01
  assert 'uniform' not in found and 'proximal_weight' not in found
  assert 'preset' not in found


def test_a_preset_fills_and_single_flags_override():
  found = _resolve('--preset=fedaboost_mnist', '--rounds=7')
  assert (found['rounds'], found['num_clients']) == (7, 264)
  found = _resolve('--preset=fedaboost_mnist', '--algorithm=ditto')
  assert found['algorithm'] == 'ditto'
  assert found['personal_weight_decay'] == 1e-3
  assert 'boost_rate' not in found


def test_flags_that_depend_on_an_overridden_one_are_reset():
  for line, name, value in (
    ('--preset=fedaboost_mnist --partition=equal', 'dirichlet_alpha', None),
    ('--preset=fedaboost_mnist --algorithm=dssgd', 'client_fraction', 1),
    ('--preset=corefed_fmnist --algorithm=standalone', 'distances', False),
    ('--algorithm=moon --contrastive_weight=0', 'temperature', 0.5),
    (f'--preset={_MARGINS} --quadruplet_weight=0', 'margin_1', 1.0),
  ):
    assert _resolve(*line.split())[name] == value, line


def test_values_of_a_preset_without_effect_are_reported():
  for line, values in (
    ('', []),
    ('--preset=fedaboost_mnist --algorithm=ditto', []),
    # A given flag is no value of the preset.
    ('--preset=fedaboost_mnist --rounds=3', []),
    ('--preset=corefed_fmnist --algorithm=standalone', ['distances=True']),
    ('--preset=cffl_digits --partition=dirichlet', ['num_examples=1000']),
    # The values that FedMDFG takes are those of the preset, or are reported.
    (
      '--preset=fedaboost_mnist --algorithm=fed_mdfg',
      ['client_weight_decay=0.001', 'local_epochs=5'],
    ),
    ('--preset=fedakd_ehr --algorithm=fedaboost', ['focal_gamma=2.0']),
  ):
    flag_values = train_flags.parse(line.split())
    _, notes = settings.resolve_with_notes(flag_values, train_flags.FLAG_NAMES)
    assert notes == [
      f"The preset's --{value} has no effect with {line.split()[-1]}."
      for value in values
    ], line


def test_a_personal_learning_rate_follows_the_clients_and_is_said():
  for line, rate, expected in (
    (
      '--client_learning_rate=0.2',
      0.2,
      ['--personal_learning_rate is 0.2, as --client_learning_rate.'],
    ),
    ('--client_learning_rate=0.2 --personal_learning_rate=0.5', 0.5, []),
    ('--preset=corefed_fmnist --client_learning_rate=0.2', 0.1, []),
  ):
    flag_values = train_flags.parse([*line.split(), '--algorithm=ditto'])
    found, notes = settings.resolve_with_notes(
      flag_values, train_flags.FLAG_NAMES
    )
    assert (found['personal_learning_rate'], notes) == (rate, expected), line


# Method: flags | the flags with which the last flag must not be given.
_WITHOUT_EFFECT = """
fed_avg: --boost_rate=0.1 | algorithm
fedaboost: --preset=fedaboost_mnist --uniform | algorithm
triplet_fl: --margin_1=1 | algorithm
dssgd: --client_fraction=0.5 | algorithm
cffl: --preset=cffl_digits --distances | algorithm
fed_mdfg: --local_epochs=2 | algorithm
scaffold: --server_optimizer=adam | algorithm
standalone: --max_update_norm=1 | algorithm
scaffold: --robust | algorithm
fedaboost: --runtime=native --device=cpu | runtime
fedaboost: --runtime=cluster --client_threads=2 | runtime
fedaboost: --num_workers=3 | runtime
fedaboost: --stop_metric=global_f1 | stop_after
fedaboost: --device_memory_gb=8 | dry_run
fedaboost: --noboosting --boost_rate=0.1 | boosting
fedaboost: --partition=equal --dirichlet_alpha=0.1 | partition
fedaboost: --task=femnist --data_fraction=0.5 | task
fedaboost: --partition=covariate_shift --shift_method=pc1_sort --shift=2 | shift_method
fedaboost: --split=server --holdout_fraction=0.1 | split
fedaboost: --split=server --task=mnist --test_fraction=0.1 | split task
fedaboost: --server_learning_rate=0.1 | server_optimizer
cffl: --free_rider_kind=zero | free_riders
fed_avg: --score_unseen | unseen_fraction
standalone: --fine_tune_epochs=1 | algorithm
fedquad: --nouse_ce --fine_tune_epochs=1 | use_ce
fed_avg: --split=server --unseen_fraction=0.2 | split
corefed: --variant=refed --temperature=1 | variant alignment
fedquad: --quadruplet_weight=0 --margin_1=2 | quadruplet_weight
fedquad: --task=adult --margin_2=1 | task
fedakd: --granularity=single_step --batch_size=2 | granularity
fedakd: --down_weight=0 --up_weight=0 --distillation_temperature=2 | down_weight up_weight
"""  # noqa: E501


def test_flags_without_effect_are_refused():
  for row in _WITHOUT_EFFECT.strip().splitlines():
    algorithm, line, others = re.split(r': | \| ', row)
    arguments = [f'--algorithm={algorithm}', *line.split()]
    refused = arguments[-1].partition('=')[0]
    values = ' '.join(rf'--{name}=\S+' for name in others.split())
    message = f'^{refused} must not be given with {values}, which [a-z ]+\\.$'
    assert re.search(message, _refusal(arguments)), row


# Flags | the beginning of the message.
_REFUSED = """
--rounds=0 | --rounds must be at least 1, found 0.
--eval_every=0 | --eval_every must be at least 1, found 0.
--checkpoint_every=0 | --checkpoint_every must be at least 1, found 0.
--data_fraction=0 | --data_fraction must be above 0 and at most 1, found 0.0.
--algorithm=standalone --stop_after=2 --stop_metric=global_f1 | --stop_metric must be of the clients with --algorithm=standalone, which
--rounds=2 --score_last=3 | --score_last must be at most --rounds=2, found 3.
--score_last=2 --stop_after=5 | --score_last must be given without --stop_after, which may end a run before those rounds, found --stop_after=5.
--stop_after=2 --stop_metric=holdout_accuracy_min | --stop_metric=holdout_accuracy_min must be given with --score_holdout, found no --score_holdout.
--export=best | --export=best must be given with --score_holdout, found no --score_holdout.
--max_update_norm=nan | --max_update_norm must be finite, found nan.
--client_fraction=0 | --client_fraction must be above 0 and at most 1, found 0.0.
--weight_sign=0 | --weight_sign must be -1 or 1, found 0.
--algorithm=fed_mpr --prune_fraction=1 | --prune_fraction must be at least 0 and below 1, found 1.0.
--algorithm=fedakd --variant=cofed | --variant must be one of full, all_data, single_dist, correct_agg with --algorithm=fedakd, found 'cofed'.
--algorithm=fair_fed | --algorithm=fair_fed must be given with --sensitive_columns, which names the two
--unseen_fraction=1 | --unseen_fraction must be at least 0 and below 1, found 1.0.
--algorithm=standalone --unseen_fraction=0.2 | --unseen_fraction must be given with --noscore_unseen where a method has no global model for clients that took no part in the training, found --algorithm=standalone.
--algorithm=fed_rdn --split=server | --algorithm=fed_rdn must be given with --split=client, found --split=server.
"""  # noqa: E501


def test_values_that_a_flag_or_a_method_cannot_have_are_refused():
  for row in _REFUSED.strip().splitlines():
    line, message = row.split(' | ')
    found = _refusal(line.split())
    assert found.startswith(message), f'{line}: {found or "not refused"}'
    assert '\n' not in found
  found = _refusal(['--data_file=own.csv', '--client_column=hospital'])
  assert found.startswith('--client_column must not be given with --task=digi')
  assert found.endswith('effect. It is for --task=table.'), found
  # Holdout parts of the clients can be what a server validates on.
  assert _resolve('--algorithm=cffl')['split'] == 'client'


def test_a_flag_is_refused_outside_of_its_limits_and_taken_at_them():
  flag_values = train_flags.parse([])

  def refusal(flag, value):
    setattr(flag_values, flag.name, value)
    try:
      settings.resolve(flag_values, train_flags.FLAG_NAMES)
    except settings.SettingsError as error:
      return str(error)
    finally:
      flag_values[flag.name].unparse()
    return ''

  refused = 0
  for method in methods.METHODS.values():
    flag_values.algorithm = method.name
    first = method.name == 'fedaboost'
    shared = train_flags.FLAGS.values() if first else ()
    for flag in (*method.flags, *shared):
      if flag.name in ('preset', 'algorithm'):
        continue
      name = f'--{flag.name} must be '
      for value in limits.outside(flag):
        found = refusal(flag, value)
        assert found.startswith(name), (method.name, flag.name, value, found)
        assert found.endswith(f', found {value!r}.')
        refused += 1
      for value in limits.inside(flag):
        found = refusal(flag, value)
        # Other flags may be required, or leave it without effect.
        assert f'{name}{flag.limits()}' not in found, (method.name, found)
        assert 'must be finite' not in found
  assert refused > 400


def test_text_that_a_flags_file_cannot_hold_is_refused():
  for name in ('output_dir', 'data_dir', 'compare_with'):
    for text in (' ', ' x', 'x ', 'a\nb'):
      found = _refusal([f'--{name}={text}'])
      assert found.startswith(f'--{name} must be a line of text'), text
    found = _refusal([f'--{name}=Stra\udcc3\udc9fe'])
    assert found.startswith(f'--{name} must be text in the encoding of this')


def test_text_gives_the_same_settings_as_a_flagfile(tmp_path):
  path = tmp_path / 'flags.txt'
  for line in (
    '--preset=fedaboost_mnist',
    '--preset=fedaboost_digits_without_boosting --compare_with=a',
    '--preset=cffl_freerider',
    '--test_leak=train_tests --score_last=3',
    '--preset=fedquad_digits --nouse_ce --data_fraction=0.5',
    '--device=gpu:0,gpu:1',
    '--runtime=cluster --num_workers=3 --cluster_address=a:1',
    '--algorithm=fed_avg --server_optimizer=adam --server_learning_rate=0.1',
  ):
    found = _resolve(*line.split())
    path.write_text(settings.to_text(found, 'some preset'))
    assert _resolve(f'--flagfile={path}') == found, line


# What flags.txt of a run without a preset has held since before the flags that
# reproduce the authors' scripts: such runs must still be the same runs.
_FED_AVG_ON_DIGITS = """
# Preset: none.
--algorithm=fed_avg
--balance_cap=False
--batch_size=32
--checkpoint_every=10
--checkpoints_to_keep=3
--client_fraction=1.0
--client_learning_rate=0.01
--client_optimizer=sgd
--client_seed=0
--client_weight_decay=0.0
--data_fraction=1.0
--data_seed=0
--device=auto
--distances=False
--dry_run=False
--eval_every=1
--export=global
--focal_gamma=0.0
--holdout_fraction=0.1
--learning_rate_decay=1.0
--local_epochs=1
--max_update_norm=10000.0
--min_samples=2
--model_seed=0
--robust=False
--rounds=20
--runtime=device
--split=client
--task=digits
--test_fraction=0.2
--uniform=False
"""


def test_the_text_of_usual_settings_stays():
  found = _resolve('--algorithm=fed_avg', '--task=digits')
  assert settings.to_text(found, None) == _FED_AVG_ON_DIGITS.lstrip()


def test_another_run_in_the_directory_is_refused_with_the_differences(tmp_path):
  text = settings.to_text(_resolve('--rounds=3'), None)
  assert not settings.check_same_run(tmp_path, text)
  (tmp_path / settings.FLAGS_FILE).write_text(text)
  assert settings.check_same_run(tmp_path, text)
  moved = settings.to_text(_resolve('--rounds=3', '--data_dir=x'), None)
  assert settings.check_same_run(tmp_path, moved)
  # The same rounds, and maybe fewer of them.
  ends = settings.to_text(_resolve('--rounds=3', '--stop_after=2'), None)
  assert settings.relevant(ends) == settings.relevant(text)
  assert not settings.check_same_run(tmp_path, ends)
  few, many = (
    settings.relevant(
      settings.to_text(
        _resolve('--runtime=cluster', f'--num_workers={n}'), None
      )
    )
    for n in (1, 3)
  )
  assert few == many
  other = settings.to_text(_resolve('--rounds=4', '--num_clients=5'), None)
  with pytest.raises(
    settings.SettingsError,
    match='--num_clients is not set there and 5 here; --rounds is 3 there',
  ):
    settings.check_same_run(tmp_path, other)
  (tmp_path / settings.FLAGS_FILE).write_text(other)
  with pytest.raises(
    settings.SettingsError, match='--num_clients is 5 there and not set here'
  ):
    settings.check_same_run(tmp_path, text)
  for content in (b'--uniform\n', b'\xff'):
    (tmp_path / settings.FLAGS_FILE).write_bytes(content)
    with pytest.raises(settings.SettingsError, match='^--output_dir='):
      settings.check_same_run(tmp_path, text)
  # Not waited for.
  (tmp_path / settings.FLAGS_FILE).unlink()
  os.mkfifo(tmp_path / settings.FLAGS_FILE)
  with pytest.raises(settings.SettingsError, match='read: Not a regular file'):
    settings.check_same_run(tmp_path, text)
