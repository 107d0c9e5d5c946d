"""Methods, data sets and models from outside: what they get, and mistakes."""

import functools
import importlib
import re
import sys

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import plugins
from tff_fair import tasks
from tff_fair.launchers import cli
from tff_fair.launchers.options import builders
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import help_text
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry
from tff_fair.tasks import model_builders
from tff_fair.tasks import rules

pytestmark = pytest.mark.usefixtures('plugins_as_before')

_IGNORED = dict.fromkeys(
  (
    'focal_gamma',
    'max_update_norm',
    'robust',
    'server_learning_rate',
    'server_optimizer',
  ),
  {},
)
_POWER = flag_types.Real('power', 1.0, 'Power.', minimum=0)


def _build(
  model_fn,
  *,
  num_clients=None,
  client_optimizer,
  local_epochs=1,
  batch_size=32,
  seed=0,
  client_learning_rate_fn=None,
  power: float = 1.0,
):
  raise ValueError(f'power must be small, found {power}.')


def _method(**changes):
  values = dict(
    name='powered', title='T', summary='t', flags=[_POWER], ignores=_IGNORED
  )
  return entry.Method(**{**values, **changes})


def _resolve(*arguments):
  return settings_lib.resolve(
    train_flags.parse(list(arguments)), train_flags.FLAG_NAMES
  )


def test_a_method_has_flags_help_and_a_builder():
  plugins.register_method(_method(), _build)
  settings = _resolve('--preset=fedaboost_mnist', '--algorithm=powered')
  assert settings['power'] == 1.0
  assert settings['num_clients'] == 264
  assert 'robust' in settings
  assert '--power: Power. [at least 0; default 1.0]' in help_text.help_text()
  assert builders.get('powered') is _build
  for line, message in (
    (
      '--algorithm=powered --power=-1',
      '--power must be at least 0, found -1.0.',
    ),
    ('--algorithm=powered --robust', '--robust must not be given with'),
    ('--algorithm=fed_avg --power=2', '--power must not be given with'),
  ):
    with pytest.raises(settings_lib.SettingsError, match=f'^{message}'):
      _resolve(*line.split())


@pytest.mark.usefixtures('default_runtime')
def test_flags_of_other_names_than_their_arguments_reach_the_builder():
  from tff_fair.launchers.runs import building
  from tff_fair.launchers.runs import training

  flag = flag_types.Real('strength', 1.0, 'Power.', argument='power')
  plugins.register_method(_method(flags=[flag]), _build)
  settings = _resolve('--algorithm=powered', '--strength=3')
  task = training.build_task(settings)
  assert building.builder_arguments(settings, task)['power'] == 3
  with pytest.raises(
    training.RunError, match='^--strength must be small, found 3.0.$'
  ):
    building.build(building.build_process, settings, task)
  plugins.register_method(
    _method(name='zero', flags=[]), lambda model_fn, **arguments: 1 // 0
  )
  with pytest.raises(training.RunError, match='^The builder of zero fails w'):
    building.build(building.build_process, _resolve('--algorithm=zero'), task)
  plugins.register_method(
    _method(name='other', flags=[]), lambda model_fn, **arguments: 'process'
  )
  with pytest.raises(
    training.RunError, match='^The builder of other must .* found str.$'
  ):
    building.build(building.build_process, _resolve('--algorithm=other'), task)


@pytest.mark.parametrize(
  ('name', 'changes'),
  [
    ('entry.Method', {'method': 'x'}),
    ("found 'ditto'", {'name': 'ditto'}),
    ("letters, digits and _, found 'a b'", {'name': 'a b'}),
    ('3', {'builder': 3}),
    ("flag_types, found 'power'", {'flags': ['power']}),
    ("absl, found 'v'", {'flags': [_POWER, flag_types.Real('v', 1.0, '')]}),
    ('--rounds .* kind', {'flags': [flag_types.Switch('rounds', True, '')]}),
    ('found no ridge', {'flags': [_POWER, flag_types.Real('ridge', 1.0, '')]}),
    ('default or a flag', {'builder': lambda model_fn, *, ridge, **rest: None}),
    ("'robusst'", {'ignores': {'robusst': {}, **_IGNORED}}),
    ('--rounds .* at least 1, found 0', {'defaults': {'rounds': 0}}),
    ('found .margins', {'arguments': ['margins']}),
  ],
)
def test_what_methods_must_not_be(name, changes):
  builder = changes.pop('builder', _build)
  method = changes.pop('method', None) or _method(**changes)
  with pytest.raises((TypeError, ValueError), match=name):
    plugins.register_method(method, builder)
  assert 'powered' not in builders.methods.METHODS
  assert 'power' not in train_flags.FLAG_NAMES


def _build_rings(options):
  from tff_fair.tasks import pooled

  rng = np.random.default_rng(0)
  x, y = rng.normal(size=[90, 2]), rng.integers(0, 3, 90)
  data = tasks.Examples(x.astype(np.float32), y.astype(np.int32))
  return pooled.build('rings', data=data, num_classes=3, options=options)


def _rings(**changes):
  values = dict(
    name='rings',
    build=_build_rings,
    inputs='numbers',
    num_clients=4,
    dirichlet_alpha=5.0,
    model='hidden',
  )
  return tasks.DataSet(**{**values, **changes})


def _build_hidden(input_shape, num_classes):
  return input_shape, num_classes


def test_a_task_and_a_model_are_choices_of_flags_and_of_build_task():
  plugins.register_model('hidden', _build_hidden, inputs=['numbers'])
  plugins.register_task(_rings(partitions=(*rules.POOL_PARTITIONS, 'rings')))
  settings = _resolve('--task=rings')
  assert settings['task'] == 'rings'
  assert 'rings' in tasks.PARTITION_NAMES
  task = tasks.build_task('rings', model='hidden', partition='equal')
  assert task.num_clients == 4
  assert task.model_fn() == ((2,), 3)
  with pytest.raises(ValueError, match='model of the task .digits. must be'):
    tasks.build_task('digits', model='hidden')
  with pytest.raises(ValueError, match='Did you mean rings'):
    tasks.build_task('ring')


def test_what_tasks_and_models_must_not_be():
  wrong = functools.partial(pytest.raises, (TypeError, ValueError))
  legal = {'name': 'hidden', 'build': _build_hidden, 'inputs': ['numbers']}
  for name, changes in (
    ("new, found 'gru_ehr'", {'name': 'gru_ehr'}),
    ("letters, digits and _, found '../x'", {'name': '../x'}),
    ('build must be a function', {'build': None}),
    ('inputs', {'inputs': 'numbers'}),
    ('inputs', {'inputs': ['text']}),
  ):
    with wrong(match=name):
      plugins.register_model(**{**legal, **changes})
  plugins.register_model(**legal)
  for name, data_set in (
    ('tasks.DataSet, found str', 'rings'),
    ("new, found 'adult'", _rings(name='adult')),
    ("letters, digits and _, found '<a>'", _rings(name='<a>')),
    ("found 'hiden'", _rings(model='hiden')),
    ("partition .* found 'x'", _rings(partition='x')),
    ('num_clients', _rings(num_clients=None)),
    ('dirichlet_alpha', _rings(dirichlet_alpha=None)),
  ):
    with wrong(match=name):
      plugins.register_task(data_set)
  plugins.register_task(_rings(build=lambda options: 'rings'))
  with pytest.raises(TypeError, match='must be built as a tasks.Task, found s'):
    tasks.build_task('rings')


def test_what_a_model_of_a_plug_in_must_not_do():
  def two_lines(input_shape, num_classes):
    raise ValueError('one\ntwo')

  def wide(input_shape, num_classes):
    return tf.keras.Sequential(
      [tf.keras.Input(input_shape), tf.keras.layers.Dense(num_classes + 1)]
    )

  for name, build, message in (
    ('zero', lambda shape, n: 1 // 0, "'zero' fails with ZeroDivisionError: i"),
    ('lines', two_lines, "'lines' fails with ValueError: one two.$"),
    ('wide', wide, "'wide' must have 3 outputs, one for each class, found 4.$"),
  ):
    plugins.register_model(name, build)
    with pytest.raises(plugins.PluginError, match=f'^The model {message}'):
      model_builders.get(name)((2,), 3)


def test_a_task_of_what_is_not_finite_is_refused():
  def build(options):
    built = _build_rings(options)
    (position, *_) = built.splits[0].test
    built.data.x[position, 1] = np.nan
    return built

  plugins.register_model('hidden', _build_hidden, inputs=['numbers'])
  plugins.register_task(_rings(build=build))
  message = "^The task 'rings' must hold finite inputs, found 1 others, the"
  with pytest.raises(ValueError, match=message):
    tasks.build_task('rings')


# Module -> its text.
_MODULES = {
  'raises': 'import os\n\nraise KeyError("x\\ny")',
  'exits': 'import sys\nsys.exit(3)',
  'model': """
from tff_fair import plugins
def build(input_shape, num_classes): pass
def add(): plugins.register_model('from_plugin', 'plugin_model:build')
add()
""",
  'lazy': """
from tff_fair import plugins
def add():
  plugins.register_model('absent', 'plugin_model:no_such_function')
  plugins.register_model('nowhere', 'plugin_nowhere:build')
""",
}


@pytest.fixture(name='folder')
def _folder(tmp_path, monkeypatch):
  """The modules `plugin_*` lie in the current folder."""
  monkeypatch.chdir(tmp_path)
  for name, text in _MODULES.items():
    (tmp_path / f'plugin_{name}.py').write_text(text)
  importlib.invalidate_caches()
  return tmp_path


@pytest.mark.usefixtures('folder')
def test_modules_are_loaded_once_by_name_or_by_function():
  assert plugins.loaded() == ()
  plugins.load(['plugin_model'])
  plugins.load(['plugin_model'])
  assert plugins.loaded() == ('plugin_model',)
  found = model_builders.get('from_plugin')
  assert found.args[1] is sys.modules['plugin_model'].build
  plugins.load(['plugin_lazy:add'])
  for name, message in (
    (
      'absent',
      "'absent', built by 'plugin_model:no_such_function', fails with",
    ),
    ('nowhere', "No module named 'plugin_nowhere'"),
  ):
    with pytest.raises(plugins.PluginError, match=message):
      model_builders.get(name)


@pytest.mark.usefixtures('folder')
@pytest.mark.parametrize(
  ('name', 'message'),
  [
    ('plugin_nope', "ModuleNotFoundError: No module named 'plugin_nope'"),
    ('plugin_raises', r"KeyError: 'x\\ny'"),
    ('plugin_exits', 'SystemExit: 3'),
    ('plugin_model:none', "no attribute 'none'"),
  ],
)
def test_a_plugin_of_the_command_that_fails_ends_the_program(name, message):
  with pytest.raises(SystemExit) as error:
    cli.load_plugins(['train', '--rounds', '3', f'--plugins={name}'])
  pattern = f"^Error: The plug-in '{re.escape(name)}' fails with .*{message}"
  assert re.match(pattern, error.value.code), error.value.code
  assert '\n' not in error.value.code


def test_names_are_read_from_flags_and_flag_files(folder, monkeypatch):
  (folder / 'flags').write_text('--plugins=a, b\n--power=2\n')
  loaded = []
  monkeypatch.setattr(plugins, 'load', loaded.extend)
  monkeypatch.setattr(plugins, 'load_installed', lambda: [])
  cli.load_plugins(
    ['train', '--rounds', '3', '--flagfile=flags', '--plugins', 'c']
  )
  assert loaded == ['a', 'b', 'c']
  with pytest.raises(SystemExit, match='^Error: .*flagfile.*nope'):
    cli.load_plugins(['train', '--flagfile=nope'])


def test_an_installed_plugin_that_fails_is_a_line(folder, capsys):
  """A folder with metadata is what an installed package looks like."""
  for name, value in (
    ('broken', 'plugin_raises'),
    ('good', 'plugin_model:add'),
    ('model', 'plugin_model'),
  ):
    info = folder / f'{name}_package-1.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text(
      f'Metadata-Version: 2.1\nName: {name}_package\nVersion: 1\n'
    )
    (info / 'entry_points.txt').write_text(
      f'[tff_fair.plugins]\n{name} = {value}\n'
    )
  sys.path.insert(0, str(folder))
  cli.load_plugins(['train'])
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 2, lines
  assert lines[0].startswith(
    "Warning: The entry point 'broken': The plug-in 'plugin_raises' fails with"
  )
  # It registers its model twice.
  assert 'must be new' in lines[1]
  assert 'from_plugin' in tasks.MODEL_NAMES
