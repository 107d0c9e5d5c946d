"""A method's entry says the same as its builder, and the docs the same."""

import inspect
import typing

import pytest

from tff_fair import algorithms
from tff_fair import runtime
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import run_flags
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options import write_docs

# What builders have where the launchers always give something else.
_BUILT = {
  'num_clients': (inspect.Parameter.empty, None),
  'client_optimizer': (inspect.Parameter.empty,),
  'client_learning_rate_fn': (None,),
  'server_optimizer': (None,),
  'personal_optimizer': (None,),
  'free_riders': (None,),
}
_TYPES = {
  bool: flag_types.Switch,
  int: flag_types.Integer,
  float: flag_types.Real,
}


def _parameters(method):
  builder = getattr(algorithms, f'build_{method.name}')
  return list(inspect.signature(builder).parameters.values())[1:]


def _flags_of(method, argument):
  """The flags that set an argument of a method's builder."""
  own = {flag.name for flag in method.flags}
  return [
    flag
    for flag in run_flags.of_method(method).values()
    if argument == (flag.argument or (flag.name in own and flag.name))
  ]


def test_every_builder_has_an_entry_and_no_entry_is_without_builder():
  helpers = {'build_channel_statistics', 'build_class_centroids'}
  builders = {n for n in algorithms.__all__ if n.startswith('build_')} - helpers
  assert builders == {f'build_{name}' for name in methods.METHODS}
  assert len(methods.PAPERS) == 5


def test_arguments_of_builders_are_those_of_the_entries():
  for method in methods.METHODS.values():
    names = {parameter.name for parameter in _parameters(method)}
    shared = {argument.name for argument in run_flags.ARGUMENTS}
    own = {argument.name for argument in method.arguments}
    given = set(run_flags.builder_arguments(method))
    ignored = {n for n, others in method.ignores.items() if not others}
    assert given <= names, method.name
    assert names <= given | shared | own | ignored, method.name


def test_defaults_and_choices_are_those_of_the_builders():
  compared = 0
  for method in methods.METHODS.values():
    for parameter in _parameters(method):
      flags = _flags_of(method, parameter.name)
      if not flags:
        continue
      where = f'{method.name}: {parameter.name}'
      if parameter.name in _BUILT:
        assert parameter.default in _BUILT[parameter.name], where
        continue
      defaults = tuple(flag.default for flag in flags)
      found = parameter.default
      assert defaults == (found if len(flags) > 1 else (found,)), where
      if len(flags) == 1:
        _check_type(flags[0], parameter.annotation, where)
      compared += 1
  assert compared > 150


def _check_type(flag, annotation, where):
  choices = typing.get_args(annotation)
  if typing.get_origin(annotation) is typing.Literal:
    assert tuple(flag.choices) == choices, where
  else:
    # `float | None`.
    kinds = [kind for kind in choices or [annotation] if kind in _TYPES]
    assert type(flag) is _TYPES[kinds[0]], where


def test_what_entries_refer_to_is_a_flag_of_the_method():
  for method in methods.METHODS.values():
    known = run_flags.of_method(method)
    referred = [method.defaults, method.required, method.ignores]
    referred += method.ignores.values()
    referred += [others for flag in known.values() for others in flag.unless]
    for values in referred:
      assert set(values) <= set(known), method.name
    defaults = {n: f.default for n, f in known.items() if f.default is not None}
    for values in (defaults, method.defaults, method.required):
      for name, value in values.items():
        assert not known[name].violated(value), (method.name, name)


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


def test_tables_of_the_docs_are_up_to_date():
  pages = list(write_docs.FOLDER.glob('*.md'))
  assert len(pages) == 6
  for path in pages:
    page = path.read_text()
    assert '<!-- end -->' in page
    # `python -m launchers.options.write_docs` makes it so.
    assert write_docs.render(page) == page, path.name
