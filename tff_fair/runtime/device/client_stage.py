"""A stage of a plan as a function of one client's values."""

from collections.abc import Callable, Mapping
from typing import Any

from tff_fair.runtime.device import plan
from tff_fair.runtime.device import tracing
from tff_fair.runtime.device import values

# For one client: inputs by name -> entry of each output.
Body = Callable[[Mapping[str, Any]], list[Any]]


class ClientStage:
  """Runs the steps of a stage for one client, in one call if possible."""

  def __init__(self, stage: plan.Stage, body: Body):
    """Traces the stage.

    Args:
      stage: The stage.
      body: Runs its steps for one client.
    """
    packs = {name: values.build_pack(t) for name, t in stage.inputs.items()}

    def run(leaves):
      leaves = iter(leaves)
      return body({name: pack(leaves) for name, pack in packs.items()})

    self._run = tracing.Traced(run, stage.inputs.values())
    types = {step.name: step.block.type_signature for step in stage.steps}
    self._pack_outputs = [
      values.build_pack(types[name].member) for name in stage.outputs
    ]

  def __call__(self, leaves: list[Any]) -> list[Any]:
    """Runs the stage.

    Args:
      leaves: The leaves of one client's inputs.

    Returns:
      The entry of each output.
    """
    results = iter(self._run(leaves))
    return [pack(results) for pack in self._pack_outputs]
