from absl import flags
import pytest

from launchers.options import methods
from launchers.options import presets
from launchers.options import settings
from launchers.options import train_flags


def _resolve(*arguments):
  flag_values = train_flags.parse(list(arguments))
  return settings.resolve(flag_values, train_flags.FLAG_NAMES)


def test_defaults_leave_out_what_other_methods_read():
  found = _resolve()
  assert found['algorithm'] == 'fedaboost'
  assert found['boost_rate'] == 0.01
  assert 'uniform' not in found and 'proximal_weight' not in found
  assert 'preset' not in found


def test_preset_fills_and_single_flags_override():
  found = _resolve('--preset=fedaboost_mnist', '--rounds=7')
  assert found['rounds'] == 7
  assert found['num_clients'] == 264


def test_preset_for_another_method():
  found = _resolve('--preset=fedaboost_mnist', '--algorithm=ditto')
  assert found['algorithm'] == 'ditto'
  assert found['personal_weight_decay'] == 1e-3
  assert 'boost_rate' not in found


def test_what_overrides_a_preset_takes_its_dependants_along():
  found = _resolve('--preset=fedaboost_mnist', '--partition=equal')
  assert found['dirichlet_alpha'] is None
  found = _resolve('--preset=cffl_mnist_size_p5', '--partition=dirichlet')
  assert found['num_examples'] is None
  found = _resolve('--preset=fedaboost_mnist', '--algorithm=dssgd')
  assert found['client_fraction'] == 1
  found = _resolve('--preset=corefed_fmnist', '--algorithm=standalone')
  assert found['distances'] is False
  found = _resolve('--preset=corefed_ablation_corefed', '--variant=cofed')
  assert found['alignment'] == 'server'


_USUAL = {'corefed': (0.1, 0.07), 'moon': (5.0, 0.5)}


@pytest.mark.parametrize('algorithm', _USUAL)
def test_methods_share_flags_and_not_their_defaults(algorithm):
  found = _resolve(f'--algorithm={algorithm}')
  pair = (found['contrastive_weight'], found['temperature'])
  assert pair == _USUAL[algorithm]


@pytest.mark.parametrize(
  ('algorithm', 'name', 'value'),
  [
    ('supcon_fl', 'temperature', 0.07),
    ('ditto', 'proximal_weight', 0.1),
    ('fed_prox', 'proximal_weight', 0.01),
    ('moon', 'temperature', 0.5),
  ],
)
@pytest.mark.parametrize('preset', [[], ['--preset=fedaboost_digits']])
def test_defaults_of_a_method(preset, algorithm, name, value):
  assert _resolve(*preset, f'--algorithm={algorithm}')[name] == value


@pytest.mark.parametrize(
  ('algorithm', 'name', 'value'),
  [
    # The defaults of the other methods, given, are as good as any value.
    ('moon', 'temperature', 0.07),
    ('moon', 'contrastive_weight', 0.1),
    ('fed_prox', 'proximal_weight', 0.1),
    ('fed_prox', 'proximal_weight', 0.0),
  ],
)
@pytest.mark.parametrize('preset', [None, 'fedquad_cifar100_iid_c10'])
def test_what_is_given_wins_over_the_default_of_a_method(
  preset, algorithm, name, value
):
  arguments = [f'--algorithm={algorithm}', f'--{name}={value}']
  if preset:
    arguments.append(f'--preset={preset}')
  assert _resolve(*arguments)[name] == value


def test_a_preset_wins_over_the_default_of_a_method(monkeypatch):
  preset = presets.Preset(
    source='a test',
    shared={'algorithm': 'moon'},
    methods={
      'moon': {'temperature': 0.25},
      'fed_prox': {'proximal_weight': 3.0},
    },
  )
  # A name that the flag knows.
  monkeypatch.setitem(presets.PRESETS, 'fedquad_digits', preset)
  found = _resolve('--preset=fedquad_digits')
  assert found['algorithm'] == 'moon'
  assert (found['temperature'], found['contrastive_weight']) == (0.25, 5.0)
  found = _resolve('--preset=fedquad_digits', '--algorithm=fed_prox')
  assert found['proximal_weight'] == 3.0
  found = _resolve('--preset=fedquad_digits', '--temperature=0.75')
  assert found['temperature'] == 0.75


def test_defaults_of_methods_are_of_flags_that_they_read():
  for algorithm, defaults in methods.METHOD_DEFAULTS.items():
    assert set(defaults) <= set(methods.METHOD_FLAGS[algorithm])


def test_what_is_without_effect_has_the_default_of_the_method():
  found = _resolve('--algorithm=moon', '--contrastive_weight=0')
  assert found['temperature'] == 0.5
  found = _resolve(
    '--preset=fedquad_ablation_b05_m5_m05', '--quadruplet_weight=0'
  )
  assert (found['margin_1'], found['margin_2']) == (1.0, 0.5)


def test_the_flags_of_this_process_are_left_alone():
  before = set(flags.FLAGS)
  _resolve('--rounds=3')
  assert set(flags.FLAGS) == before


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (
      ['--algorithm=fed_avg', '--boost_rate=0.1'],
      '--boost_rate must not be given with --algorithm=fed_avg',
    ),
    (
      ['--preset=fedaboost_mnist', '--uniform'],
      '--uniform must not be given with --algorithm=fedaboost',
    ),
    (
      ['--runtime=native', '--device=cpu'],
      '--device must not be given with --runtime=native',
    ),
    (
      ['--runtime=native', '--client_threads=2'],
      '--client_threads must not be given with --runtime=native',
    ),
    (
      ['--noboosting', '--boost_rate=0.1'],
      '--boost_rate must not be given with --boosting=False',
    ),
    (
      ['--partition=equal', '--dirichlet_alpha=0.1'],
      '--dirichlet_alpha must not be given with --partition=equal',
    ),
    (
      ['--partition=class', '--dirichlet_alpha=0.1'],
      '--dirichlet_alpha must not be given with --partition=class',
    ),
    (
      ['--partition=dirichlet', '--num_examples=9'],
      '--num_examples must not be given with --partition=dirichlet',
    ),
    (
      ['--validation_fraction=0.1'],
      '--validation_fraction must not be given with --split=client',
    ),
    (
      ['--split=server', '--holdout_fraction=0.1'],
      '--holdout_fraction must not be given with --split=server',
    ),
    (
      ['--split=server', '--task=mnist', '--test_fraction=0.1'],
      '--test_fraction must not be given with --split=server --task=mnist, wh',
    ),
    (
      ['--algorithm=dssgd', '--client_fraction=0.5'],
      '--client_fraction must not be given with --algorithm=dssgd',
    ),
    (
      ['--partition=equal', '--balance_cap'],
      '--balance_cap must not be given with --partition=equal',
    ),
    (
      ['--task=femnist', '--partition=writer', '--min_samples=3'],
      '--min_samples must not be given with --partition=writer',
    ),
    (
      ['--algorithm=standalone', '--distances'],
      '--distances must not be given with --algorithm=standalone',
    ),
    (
      ['--preset=cffl_digits', '--distances'],
      '--distances must not be given with --algorithm=cffl',
    ),
    (
      ['--algorithm=dssgd', '--distances'],
      '--distances must not be given with --algorithm=dssgd',
    ),
    (
      ['--algorithm=corefed', '--variant=cofed', '--alignment=client'],
      '--alignment must not be given with --variant=cofed',
    ),
    (
      ['--algorithm=corefed', '--variant=cofed', '--beta=0.1'],
      '--beta must not be given with --variant=cofed',
    ),
    (
      ['--algorithm=corefed', '--variant=refed', '--nogradient_reuse'],
      '--gradient_reuse must not be given with --variant=refed',
    ),
    (
      ['--algorithm=corefed', '--variant=refed', '--temperature=1'],
      '--temperature must not be given with --variant=refed --alignment=server',
    ),
    (
      ['--algorithm=corefed', '--contrastive_weight=1'],
      '--contrastive_weight must not be given with --alignment=server',
    ),
    (
      ['--algorithm=fed_mdfg', '--local_epochs=2'],
      '--local_epochs must not be given with --algorithm=fed_mdfg',
    ),
    (
      ['--algorithm=fed_mgda', '--q=0.5'],
      '--q must not be given with --algorithm=fed_mgda',
    ),
    *(
      (
        ['--algorithm=fedquad', '--quadruplet_weight=0', flag],
        f'--{name} must not be given with --quadruplet_weight=0.0, which lea',
      )
      for name, flag in (
        ('margin_1', '--margin_1=2'),
        ('margin_2', '--margin_2=0.5'),
        ('squared', '--squared'),
        ('resample', '--resample=once'),
      )
    ),
    (
      ['--algorithm=triplet_fl', '--metric_weight=0', '--margin=2'],
      '--margin must not be given with --metric_weight=0.0',
    ),
    (
      ['--algorithm=triplet_fl', '--metric_weight=0', '--resample=once'],
      '--resample must not be given with --metric_weight=0.0',
    ),
    *(
      (
        ['--algorithm=quadruplet_fl', '--metric_weight=0', f'--{name}=2'],
        f'--{name} must not be given with --metric_weight=0.0',
      )
      for name in ('margin_1', 'margin_2')
    ),
    (
      ['--algorithm=quadruplet_fl', '--metric_weight=0', '--resample=epoch'],
      '--resample must not be given with --metric_weight=0.0',
    ),
    (
      ['--algorithm=supcon_fl', '--metric_weight=0', '--temperature=1'],
      '--temperature must not be given with --algorithm=supcon_fl --metric_we',
    ),
    (
      ['--algorithm=moon', '--contrastive_weight=0', '--temperature=1'],
      '--temperature must not be given with --algorithm=moon --contrastive_we',
    ),
    # Two classes leave no second negative.
    *(
      (
        [f'--algorithm={name}', '--task=adult', '--margin_2=1'],
        '--margin_2 must not be given with --task=adult',
      )
      for name in ('fedquad', 'quadruplet_fl')
    ),
    (
      ['--algorithm=moon', '--nouse_ce'],
      '--use_ce must not be given with --algorithm=moon',
    ),
    (
      ['--algorithm=triplet_fl', '--margin_1=1'],
      '--margin_1 must not be given with --algorithm=triplet_fl',
    ),
    (
      ['--algorithm=quadruplet_fl', '--squared'],
      '--squared must not be given with --algorithm=quadruplet_fl',
    ),
    (
      ['--algorithm=supcon_fl', '--resample=once'],
      '--resample must not be given with --algorithm=supcon_fl',
    ),
    (
      ['--preset=fedquad_digits', '--metric_weight=1'],
      '--metric_weight must not be given with --algorithm=fedquad',
    ),
    (
      ['--task=femnist', '--data_fraction=0.5'],
      '--data_fraction must not be given with --task=femnist',
    ),
    (
      ['--split=server', '--task=cifar100', '--test_fraction=0.1'],
      '--test_fraction must not be given with --split=server --task=cifar100',
    ),
    (
      ['--preset=cffl_digits', '--pretrain_epochs=3'],
      '--pretrain_epochs must not be given with --pretrain=False',
    ),
    (
      ['--preset=cffl_digits', '--free_rider_kind=zero'],
      '--free_rider_kind must not be given with --free_riders=0',
    ),
    (
      ['--preset=cffl_digits', '--algorithm=standalone', '--free_riders=1'],
      '--free_riders must not be given with --algorithm=standalone',
    ),
  ],
)
def test_flags_without_effect_are_refused(arguments, message):
  with pytest.raises(settings.SettingsError, match=message):
    _resolve(*arguments)


def test_what_a_method_cannot_do_without():
  # Holdout parts of the clients can be what its server validates on.
  assert _resolve('--algorithm=cffl')['split'] == 'client'
  message = '--algorithm=fed_rdn must be given with --split=client, found --spl'
  with pytest.raises(settings.SettingsError, match=message):
    _resolve('--algorithm=fed_rdn', '--split=server')


@pytest.mark.parametrize(
  ('algorithm', 'flag'),
  [
    ('moon', 'contrastive_weight'),  # Beside --alignment, which is corefed's.
    ('moon', 'temperature'),
    ('supcon_fl', 'temperature'),
    ('triplet_fl', 'margin'),
    ('quadruplet_fl', 'margin_2'),
    ('fedquad', 'margin_2'),
    ('fed_prox', 'proximal_weight'),
  ],
)
def test_flags_of_several_methods_are_not_refused(algorithm, flag):
  assert _resolve(f'--algorithm={algorithm}', f'--{flag}=0.3')[flag] == 0.3


@pytest.mark.parametrize('value', ['nan', 'inf'])
def test_numbers_must_be_finite(value):
  with pytest.raises(settings.SettingsError, match=f'finite, found {value}'):
    _resolve(f'--client_learning_rate={value}')


@pytest.mark.parametrize(
  'arguments',
  [
    ['--preset=fedaboost_mnist'],
    ['--preset=fedaboost_femnist_2', '--algorithm=ditto'],
    ['--preset=fedaboost_digits_without_boosting', '--compare_with=a'],
    ['--preset=cffl_freerider'],
    ['--preset=cffl_adult_size_p5', '--algorithm=dssgd', '--upload_rate=0.1'],
    ['--preset=corefed_fmnist', '--task=mnist', '--nogradient_reuse'],
    ['--preset=corefed_ablation_refed'],
    ['--preset=corefed_cifar', '--algorithm=fed_mdfg'],
    ['--preset=fedquad_digits', '--nouse_ce', '--data_fraction=0.5'],
    ['--preset=fedquad_ablation_b05_m5_m05', '--quadruplet_weight=0'],
    ['--preset=fedquad_cifar100_a05_c200', '--algorithm=moon'],
    ['--algorithm=moon', '--contrastive_weight=0'],
    ['--algorithm=fed_prox'],
    ['--algorithm=supcon_fl', '--metric_weight=0'],
  ],
)
def test_text_gives_the_same_settings_as_a_flagfile(arguments, tmp_path):
  found = _resolve(*arguments)
  path = tmp_path / 'flags.txt'
  path.write_text(settings.to_text(found, 'some preset'))
  assert _resolve(f'--flagfile={path}') == found


def test_same_run(tmp_path):
  text = settings.to_text(_resolve('--rounds=3'), None)
  assert not settings.check_same_run(tmp_path, text)
  (tmp_path / settings.FLAGS_FILE).write_text(text)
  assert settings.check_same_run(tmp_path, text)
  moved = settings.to_text(_resolve('--rounds=3', '--data_dir=x'), None)
  assert settings.check_same_run(tmp_path, moved)


def test_another_run_is_refused_with_the_differences(tmp_path):
  text = settings.to_text(_resolve('--rounds=3'), None)
  (tmp_path / settings.FLAGS_FILE).write_text(text)
  other = settings.to_text(_resolve('--rounds=4', '--num_clients=5'), None)
  with pytest.raises(
    settings.SettingsError,
    match='--num_clients is not set there and 5 here; --rounds is 3 there',
  ):
    settings.check_same_run(tmp_path, other)
