"""The values that methods try: one grid, as many trials, defaults first."""

import pathlib

import numpy as np
import pytest

from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import trials
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry

_RATE = 'client_learning_rate'


def _of(method, count, optimizer='sgd'):
  return trials.of_method(method, optimizer, count)


def test_rates_are_in_equal_ratios_with_two_digits():
  rates = trials.learning_rates('sgd', 8)
  assert (len(rates), rates[0], rates[-1]) == (8, 0.01, 1.0)
  ratios = np.divide(rates[1:], rates[:-1])
  np.testing.assert_allclose(ratios, 100 ** (1 / 7), rtol=0.05)
  assert all(float(f'{rate:.2g}') == rate for rate in rates)
  # Adam's steps do not grow with the gradient.
  for optimizer in ('adam', 'adamw'):
    adaptive = trials.learning_rates(optimizer, 8)
    assert (adaptive[0], adaptive[-1]) == (1e-4, 1e-2)


@pytest.mark.parametrize('count', [2, 3, 4, 8, 9, 20])
def test_all_methods_try_the_same_rates_each_once(count):
  found = {
    tuple(tried[_RATE] for tried in _of(method, count))
    for method in methods.METHODS.values()
  }
  (rates,) = found
  assert len(set(rates)) == count
  assert set(rates) <= set(trials.learning_rates('sgd', count))


def test_fewer_trials_are_the_first_of_eight():
  for method in methods.METHODS.values():
    eight = _of(method, 8)
    assert sorted(t[_RATE] for t in eight) == trials.learning_rates('sgd', 8)
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


def test_every_value_of_a_method_is_tried_in_eight_trials():
  for method in methods.METHODS.values():
    for name, values in method.tuned.items():
      tried = {trial[name] for trial in _of(method, 8)}
      assert tried == set(values), (method.name, name)


def test_entries_tune_at_most_two_flags_from_their_defaults():
  for method in methods.METHODS.values():
    known = train_flags.of_method(method)
    assert len(method.tuned) <= 2, method.name
    assert _RATE not in method.tuned, method.name
    for name, values in method.tuned.items():
      where = f'{method.name}: {name}'
      assert values[0] == known[name].default, where
      assert len(set(values)) == len(values) > 1, where


def test_every_trial_of_every_method_is_a_run():
  planner = plan.Planner(
    shared={'task': 'digits'},
    rounds=60,
    tune=8,
    output_dir=pathlib.Path('out'),
  )
  folders = set()
  for name in methods.METHODS:
    tried = planner.trials(name)
    assert len(tried) == 8
    for i, values in enumerate(tried):
      run = planner.run(name, i, 0)
      assert values.items() <= run.settings.items(), (name, i)
      folders.add(run.output_dir)
  assert len(folders) == 8 * len(methods.METHODS)
