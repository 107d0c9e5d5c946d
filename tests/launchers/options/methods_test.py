"""A method's entry says the same as its builder, and the docs the same."""

import dataclasses
import json
from typing import Annotated, Literal

from tests import refusals
from tff_fair import algorithms
from tff_fair import runtime
from tff_fair.annotations import Limits, Symbol, Unless
from tff_fair.launchers.options import builders
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options import write_schema
from tff_fair.launchers.options.methods import entry


def test_every_builder_has_an_entry_and_no_entry_is_without_builder():
  helpers = {'build_channel_statistics', 'build_class_centroids'}
  found = {n for n in algorithms.__all__ if n.startswith('build_')} - helpers
  ours = {**methods.PAPERS, **methods.BASELINES}
  assert found == {f'build_{name}' for name in ours}
  assert len(methods.PAPERS) == 5


def test_entries_name_flags_and_values_that_exist():
  for method in methods.METHODS.values():
    builders.check_entry(method)
    builders._check_parameters(method, builders.get(method.name))
    for flag in method.flags:
      assert flag.help.endswith('.'), (method.name, flag.name)


def test_the_schema_is_up_to_date():
  # `python -m launchers.options.write_schema` makes it so.
  assert methods.SCHEMA.read_text('utf-8') == write_schema.to_text()


def _build(  # noqa: D417
  model_fn,
  *,
  num_clients,
  batch_size: int = 8,
  client_learning_rate_fn=None,
  rate: Annotated[float | None, Limits(above=0, below=2), Symbol('r')] = 1,
  steps: Annotated[
    int, Limits(minimum=1), Unless(mode='b'), Unless(on=True)
  ] = 3,
  mode: Literal['a', 'b'] = 'a',
  sign: Literal[-1, 1] = 1,
  on: bool = False,
  limit: float,
  untyped=1.0,
  validation=None,
):
  """Builds nothing.

  See `build_fed_avg` for the others.

  Args:
    rate: A rate. It has two
      sentences.
    mode: A mode (a, or b).
    batch_size: Not a flag of its own.
  """


def test_a_signature_has_the_flags_of_its_arguments():
  found = builders.read(_build)
  assert found.flags == (
    flag_types.Real('rate', 1, 'A rate.', symbol='r', above=0, below=2),
    flag_types.Integer(
      'steps', 3, '', minimum=1, unless=({'mode': 'b'}, {'on': True})
    ),
    flag_types.Choice('mode', 'a', 'A mode (a, or b).', choices=('a', 'b')),
    flag_types.Integer('sign', 1, '', choices=(-1, 1)),
    flag_types.Switch('on', False, ''),
  )
  assert found.defaults == {'batch_size': 8}
  assert found.arguments == ('validation',)
  # Not `num_clients`: data always have clients.
  assert {*found.ignores} == {
    *('local_epochs', 'client_optimizer', 'client_learning_rate'),
    *('client_weight_decay', 'client_momentum', 'client_nesterov'),
    *('max_update_norm', 'focal_gamma', 'robust'),
    *('server_optimizer', 'server_learning_rate', 'client_seed'),
  }
  assert builders.argument_texts(_build)['rate'] == (
    'A rate. It has two sentences.'
  )
  # What the docstring leaves to another.
  assert builders.argument_texts(_build)['uniform'].startswith('All clients')
  # A dictionary that JSON can hold, and back.
  text = json.dumps(found.to_json())
  again = entry.Signature.from_json(json.loads(text))
  assert again.to_json() == json.loads(text)
  assert again.flags[0] == found.flags[0]


def test_an_entry_goes_before_the_signature():
  method = entry.Method(
    name='x',
    title='X',
    summary='x',
    flags=(
      flag_types.Real('rate', 0.5, 'Ours.'),
      flag_types.Integer('count', 2, 'Steps.', argument='steps'),
    ),
    without_flag=('mode',),
    defaults={'batch_size': 4, 'rounds': 9},
    ignores={'distances': {}, 'robust': {'on': True}},
  ).with_signature(builders.read(_build))
  assert [flag.name for flag in method.flags] == ['sign', 'on', 'rate', 'count']
  assert method.flags[2].default == 0.5
  assert method.defaults == {'batch_size': 4, 'rounds': 9}
  assert method.ignores['robust'] == {'on': True}
  assert method.ignores['focal_gamma'] == {} == method.ignores['distances']
  assert 'steps' in train_flags.builder_arguments(method)


def test_flags_that_set_an_argument_together_have_its_default():
  for name in ('fedquad', 'quadruplet_fl'):
    flags = builders.flags_of(methods.METHODS[name], 'margins')
    default = builders.parameters(builders.get(name))['margins'].default
    assert tuple(flag.default for flag in flags) == default, name


def test_what_an_entry_says_for_comparisons_is_checked():
  method = methods.METHODS['fed_prox']
  refusals.check(
    lambda **changes: builders.check_entry(
      dataclasses.replace(method, **changes)
    ),
    [
      (
        {'tuned': {'q': (0.1,)}},
        ValueError,
        "^tuned of the method 'fed_prox' must be of its flags, found 'q'",
      ),
      (
        {'tuned': {'proximal_weight': (0.1, -1.0)}},
        ValueError,
        "^--proximal_weight of the method 'fed_prox' must be .* found -1.0",
      ),
      (
        {'groups': ('fair', 'robust')},
        ValueError,
        "^groups of the method 'fed_prox' must be of fair, .* found 'robust'",
      ),
    ],
  )
  # A shared flag may be tuned, too.
  builders.check_entry(
    dataclasses.replace(method, tuned={'batch_size': (32, 8)})
  )


def test_arguments_that_are_made_of_a_run_are_those_that_entries_may_name():
  from tff_fair.launchers.runs import building

  assert {*entry.PROVIDED} <= {*building._ARGUMENTS}
  named = {n for method in methods.METHODS.values() for n in method.arguments}
  assert named == {*entry.PROVIDED}


def test_absl_knows_all_flags_and_all_choices():
  flag_values = train_flags.parse([])
  for method in methods.METHODS.values():
    for flag in method.flags:
      # The default depends on the method.
      assert flag_values[flag.name].default is None
      if isinstance(flag, flag_types.Choice):
        assert {*flag.choices} <= {*flag_values[flag.name].parser.enum_values}


def test_the_flag_offers_the_runtimes_that_exist():
  assert tuple(train_flags.FLAGS['runtime'].choices) == runtime.RUNTIME_KINDS
