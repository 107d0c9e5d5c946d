"""The runs of a comparison: which methods, trials and flags."""

import pathlib

import numpy as np
import pytest

from tff_fair.launchers.comparison import plan
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry

_FIRST = ['fed_avg', 'standalone']
_RATE = 'client_learning_rate'


def _planner(tune=0, rounds=60, **shared):
  return plan.Planner(
    shared={'task': 'digits', **shared},
    rounds=rounds,
    tune=tune,
    output_dir=pathlib.Path('out'),
  )


def _names(arguments):
  return {a.partition('=')[0].removeprefix('--') for a in arguments}


def test_all_and_groups_are_those_of_the_entries():
  everything = plan.choose_methods(['all'])
  ours = {**methods.PAPERS, **methods.BASELINES}
  assert sorted(everything) == sorted(ours)
  for group in entry.GROUPS:
    chosen = plan.choose_methods([group])
    assert set(chosen) - set(_FIRST) == {
      name
      for name, method in methods.METHODS.items()
      if group in method.groups and name not in _FIRST
    }
    assert 5 < len(chosen) < len(everything)
  # The papers' own methods are made to be fair, the personalised are not all.
  assert set(methods.PAPERS) <= set(plan.choose_methods(['fair']))
  assert 'ditto' in plan.choose_methods(['personal'])
  assert 'q_fed_avg' not in plan.choose_methods(['personal'])


def test_chosen_are_once_each_with_the_baseline_and_standalone_first():
  for names in (['all'], ['fair'], ['personal'], ['ditto'], ['standalone']):
    chosen = plan.choose_methods(names)
    assert chosen[:2] == _FIRST, names
    assert len(set(chosen)) == len(chosen), names
  found = plan.choose_methods(['scaffold', 'ditto', 'ditto'])
  assert found == [*_FIRST, 'ditto', 'scaffold']
  both = plan.choose_methods(['scaffold', 'fair'])
  assert set(both) == {*plan.choose_methods(['fair']), 'scaffold'}


def test_unseen_clients_are_left_out_for_all_and_scored_by_global_models():
  planner = _planner(unseen_fraction=0.2)
  for method, scored in (('fed_avg', True), ('standalone', False)):
    found = planner.run(method, 0, 0).settings
    assert found['unseen_fraction'] == 0.2
    assert found['score_unseen'] == scored


def test_own_defaults_of_shared_flags_give_way_to_the_shared_values():
  """Five epochs for some and one for others would not be one footing."""
  special = [m for m in methods.METHODS.values() if m.defaults]
  assert any(m.defaults.get('local_epochs') == 5 for m in special)
  for given in ({}, {'local_epochs': 2, 'batch_size': 7}):
    planner = _planner(**given)
    expected = planner.run('fed_avg', 0, 0).settings
    for method in special:
      found = planner.run(method.name, 0, 0).settings
      for name in method.defaults:
        assert found[name] == expected[name], (method.name, name)
        assert found[name] == given.get(name, train_flags.FLAGS[name].default)


def test_shared_flags_reach_every_run_of_a_method_that_has_them():
  shared = {
    'num_clients': 4,
    'local_epochs': 3,
    'batch_size': 7,
    'client_optimizer': 'adam',
    'holdout_fraction': 0.25,
    'partition': 'dirichlet',
    'dirichlet_alpha': 0.5,
    'client_threads': 1,
  }
  planner = _planner(tune=2, **shared)
  ignored = {}
  for method in methods.METHODS.values():
    if method.needs_groups:  # Digits have none.
      continue
    run = planner.run(method.name, 1, 3)
    given = _names(run.arguments)
    without = {n for n in shared if n not in given}
    assert without == {n for n in shared if method.ignores.get(n) == {}}
    if without:
      ignored[method.name] = without
    for name in set(shared) - without:
      assert run.settings[name] == shared[name], (method.name, name)
    seeds = [run.settings[f'{n}_seed'] for n in ('model', 'client', 'data')]
    assert seeds == [3, 3, 3]
  # One step of gradient descent on all examples.
  assert 'local_epochs' in ignored['fed_mdfg']
  assert 'fed_avg' not in ignored


def test_rounds_set_evaluations_and_checkpoints():
  for rounds, evaluations, checkpoints in (
    (1, 1, 25),
    (60, 2, 25),
    (500, 20, 50),
  ):
    settings = _planner(rounds=rounds).run('ditto', 0, 0).settings
    assert settings['rounds'] == rounds
    assert settings['eval_every'] == evaluations
    assert settings['checkpoint_every'] == checkpoints
    assert settings['export'] == 'none'
  settings = _planner(eval_every=7).run('ditto', 0, 0).settings
  assert settings['eval_every'] == 7


def test_a_trial_has_its_directory_however_many_there_are():
  four, eight = _planner(tune=4), _planner(tune=8)
  for name in ('fed_avg', 'cffl', 'fed_prox'):
    for trial in range(4):
      found, expected = (p.run(name, trial, 1) for p in (four, eight))
      assert found == expected
  run = eight.run('fed_prox', 1, 2)
  assert run.output_dir == pathlib.Path(
    'out/runs/fed_prox/client_learning_rate=0.14-proximal_weight=0.1/seed_2'
  )
  default = _planner().run('fed_prox', 0, 2).output_dir
  assert default == pathlib.Path('out/runs/fed_prox/default/seed_2')


def test_the_middle_of_the_rates():
  assert _planner(tune=8).middle_rate() == pytest.approx(0.1)
  adam = _planner(tune=4, client_optimizer='adam')
  assert adam.middle_rate() == pytest.approx(1e-3)


def _of(method, count, optimizer='sgd'):
  return plan.list_trials(method, optimizer, count)


def test_rates_are_in_equal_ratios_with_two_digits():
  rates = plan.list_rates('sgd', 8)
  assert (len(rates), rates[0], rates[-1]) == (8, 0.01, 1.0)
  ratios = np.divide(rates[1:], rates[:-1])
  np.testing.assert_allclose(ratios, 100 ** (1 / 7), rtol=0.05)
  assert all(float(f'{rate:.2g}') == rate for rate in rates)
  # Adam's steps do not grow with the gradient.
  for optimizer in ('adam', 'adamw'):
    adaptive = plan.list_rates(optimizer, 8)
    assert (adaptive[0], adaptive[-1]) == (1e-4, 1e-2)


@pytest.mark.parametrize('count', [2, 3, 4, 8, 9, 20])
def test_all_methods_try_the_same_rates_each_once(count):
  found = {
    tuple(tried[_RATE] for tried in _of(method, count))
    for method in methods.METHODS.values()
  }
  (rates,) = found
  assert len(set(rates)) == count
  assert set(rates) <= set(plan.list_rates('sgd', count))


def test_fewer_trials_are_the_first_of_eight():
  for method in methods.METHODS.values():
    eight = _of(method, 8)
    assert sorted(t[_RATE] for t in eight) == plan.list_rates('sgd', 8)
    for count in (2, 4, 7):
      assert _of(method, count) == eight[:count], method.name


def test_parameters_vary_apart_from_the_rate_and_from_each_other():
  method = entry.Method(
    name='x', title='X', summary='', tuned={'a': (1, 2, 3), 'b': (4, 5)}
  )
  # Radical inverses of 0..7 in base 2 for the rate, 3 for a, and 5 for b.
  found = [(tried['a'], tried['b']) for tried in _of(method, 8)]
  assert found == [
    (1, 4), (2, 4), (3, 4), (1, 5), (2, 5), (3, 4), (1, 4), (2, 4),
  ]  # fmt: skip


def test_entries_tune_at_most_two_flags_from_their_defaults():
  for method in methods.METHODS.values():
    known = train_flags.of_method(method)
    assert len(method.tuned) <= 2, method.name
    eight = _of(method, 8)
    assert _RATE not in method.tuned, method.name
    for name, values in method.tuned.items():
      where = f'{method.name}: {name}'
      # One that follows another flag has no default of its own.
      default = None if known[name].follows else values[0]
      assert known[name].default == default, where
      assert len(set(values)) == len(values) > 1, where
      assert {trial[name] for trial in eight} == set(values), where
