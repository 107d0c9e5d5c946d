import numpy as np
import tensorflow_federated as tff

from tff_fair.runtime.device import plan

NUMBERS = tff.FederatedType(np.int32, tff.CLIENTS)


@tff.tensorflow.computation(np.int32, np.int32)
def add(a, b):
  return a + b


@tff.tensorflow.computation(np.int32)
def double(a):
  return 2 * a


def _plan(computation):
  tree, _ = tff.tensorflow.replace_intrinsics_with_bodies(
    computation.to_building_block()
  )
  return plan.make_plan(tff.framework.to_call_dominant(tree).result)


def _stages(made):
  return [item for item in made.items if isinstance(item, plan.Stage)]


def test_steps_between_aggregations_are_one_stage():
  @tff.federated_computation(NUMBERS)
  def two_sums(numbers):
    doubled = tff.federated_map(double, numbers)
    total = tff.federated_sum(doubled)  # In the middle of the client's steps.
    quadrupled = tff.federated_map(double, doubled)
    return total, tff.federated_sum(quadrupled)

  (stage,) = _stages(_plan(two_sums))
  assert len(stage.steps) == len(stage.aggregations) == 2
  assert not stage.outputs  # Nobody else needs them.
  assert list(stage.inputs.values()) == [NUMBERS]


def test_what_needs_an_aggregate_waits_for_it():
  @tff.federated_computation(NUMBERS)
  def deviations(numbers):
    total = tff.federated_broadcast(tff.federated_sum(numbers))
    shifted = tff.federated_map(add, (numbers, total))
    return tff.federated_max(tff.federated_map(double, shifted))

  made = _plan(deviations)
  first, second = _stages(made)
  assert not first.steps
  assert len(first.aggregations) == len(second.aggregations) == 1
  # Whatever an item mentions of the block was defined by an earlier one.
  defined = set()
  names = {name for item in made.items for name in item.names}
  for item in made.items:
    assert set(item.inputs) & names <= defined
    defined |= set(item.names)


def test_two_stages_and_when_values_are_dropped():
  @tff.federated_computation(NUMBERS)
  def chain(numbers):
    doubled = tff.federated_map(double, numbers)
    total = tff.federated_broadcast(tff.federated_sum(doubled))
    shifted = tff.federated_map(add, (doubled, total))
    return tff.federated_sum(shifted)

  made = _plan(chain)
  first, second = _stages(made)
  (name,) = first.outputs
  assert name in second.inputs
  position = made.items.index(second)
  assert name in made.unused[position]
  assert all(name not in unused for unused in made.unused[:position])
  dropped = [n for unused in made.unused for n in unused]
  assert len(dropped) == len(set(dropped))


def test_what_is_equal_for_all_clients_is_computed_once():
  @tff.federated_computation(tff.FederatedType(np.int32, tff.SERVER), NUMBERS)
  def sums(number, numbers):
    sent = tff.federated_broadcast(number)
    return tff.federated_sum(tff.federated_map(add, (sent, numbers)))

  made = _plan(sums)
  (stage,) = _stages(made)
  steps = [item.block for item in made.items if isinstance(item, plan.Step)]
  uris = [step.function.uri for step in steps if _is_intrinsic_call(step)]
  assert 'federated_broadcast' in uris
  assert not {'federated_map', 'federated_zip_at_clients'} & set(uris)
  assert len(stage.aggregations) == 1


def _is_intrinsic_call(block):
  return isinstance(block.function, tff.framework.Intrinsic)
