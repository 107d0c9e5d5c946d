"""A method's entry says the same as its builder, and the docs the same."""

import dataclasses
import inspect

import pytest

from tests import refusals
from tff_fair import algorithms
from tff_fair import runtime
from tff_fair.launchers.options import builders
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import run_flags
from tff_fair.launchers.options import train_flags


def _parameters(method):
  builder = builders.get(method.name)
  return list(inspect.signature(builder).parameters.values())[1:]


def test_every_builder_has_an_entry_and_no_entry_is_without_builder():
  helpers = {'build_channel_statistics', 'build_class_centroids'}
  builders = {n for n in algorithms.__all__ if n.startswith('build_')} - helpers
  assert builders == {f'build_{name}' for name in methods.METHODS}
  assert len(methods.PAPERS) == 5


def test_entries_fit_their_builders():
  for method in methods.METHODS.values():
    builders.check_entry(method)
    builders.check_builder(method, builders.get(method.name))


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
        "^tuned of the method 'fed_prox' must name flags .* found 'q'",
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


def test_every_argument_of_our_builders_is_described_and_has_a_type():
  shared = {argument.name for argument in run_flags.ARGUMENTS}
  set_by_flags = 0
  for method in methods.METHODS.values():
    given = set(run_flags.builder_arguments(method))
    own = {argument.name for argument in method.arguments}
    ignored = {n for n, others in method.ignores.items() if not others}
    for parameter in _parameters(method):
      where = f'{method.name}: {parameter.name}'
      assert parameter.name in given | shared | own | ignored, where
      if parameter.name in builders.BUILT:
        assert parameter.default in builders.BUILT[parameter.name], where
      elif builders.flags_of(method, parameter.name):
        assert parameter.default is not parameter.empty, where
        assert parameter.annotation is not parameter.empty, where
        set_by_flags += 1
  assert set_by_flags > 150


def test_arguments_that_are_made_of_a_run_are_those_that_entries_may_name():
  from tff_fair.launchers.runs import processes

  made = {*processes._ARGUMENTS}
  assert {*builders.PROVIDED} <= made
  assert {*builders.COMPOSED} <= made
  named = {
    argument.name
    for method in methods.METHODS.values()
    for argument in method.arguments
    if argument.provided
  }
  assert named == {*builders.PROVIDED}


def test_flags_of_one_name_are_of_one_kind():
  flags = [flag_types.Real('x', 1.0, 'A.'), flag_types.Switch('x', True, 'B.')]
  with pytest.raises(
    TypeError, match='--x must be of the same kind .* found R'
  ):
    flag_types.merge(flags)


def test_absl_knows_all_flags_and_all_choices():
  flag_values = train_flags.parse([])
  for method in methods.METHODS.values():
    for flag in method.flags:
      # The default depends on the method.
      assert flag_values[flag.name].default is None
      if isinstance(flag, flag_types.Choice):
        assert {*flag.choices} <= {*flag_values[flag.name].parser.enum_values}


def test_the_flag_offers_the_runtimes_that_exist():
  assert run_flags.RUNTIMES == runtime.RUNTIME_KINDS
