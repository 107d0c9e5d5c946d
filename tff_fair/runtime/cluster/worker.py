"""A worker: runs the clients that the driver gives it, as `device` would."""

from collections.abc import Callable, Mapping, Sequence
import functools
import itertools
import os
from typing import Any

import numpy as np
import ray
from ray import cloudpickle
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime import failed_computation
from tff_fair.runtime.cluster import loaded_clients
from tff_fair.runtime.cluster import messages
from tff_fair.runtime.device import aggregation
from tff_fair.runtime.device import client_stage
from tff_fair.runtime.device import local_clients
from tff_fair.runtime.device import placement
from tff_fair.runtime.device import program
from tff_fair.runtime.device import values


class Worker:
  """An actor in a process of Ray. Its calls run one after the other."""

  def __init__(self, op_threads: int, client_threads: int) -> None:
    """Starts TensorFlow; some bits depend on `op_threads`."""
    tf.config.threading.set_intra_op_parallelism_threads(op_threads)
    devices = placement.resolve_devices('all')
    if devices[0].startswith('/device:CPU'):
      devices = devices[:1]
    self._device = devices[0]
    self._clients = local_clients.LocalClients(devices, client_threads)
    self._programs: dict[int, program.Program] = {}
    self._executions: dict[int, _Execution] = {}
    self._stopped: set[int] = set()
    self._kept: dict[int, Any] = {}
    self._loaded = loaded_clients.LoadedClients()

  @ray.method(concurrency_group='health')
  def ping(self) -> tuple[str, int]:
    """Answers while the process runs: the address of its node, and its id."""
    return ray.util.get_node_ip_address(), os.getpid()

  @ray.method(concurrency_group='health')
  def stop(self, execution: int) -> None:
    """Starts no more clients of an execution, whatever runs now."""
    self._stopped.add(execution)

  def run_stage(self, call: messages.StageCall, *large: Any) -> list[Any]:
    """Runs clients, and adds up what they are to add up.

    Returns a `StageResult`, and for each of `call.starts` the totals of these
    clients in each aggregation; or as many times a `Failure`.
    """
    try:
      with tf.device(self._device):
        results = self._run_stage(call, large)
    except Exception as error:  # It belongs to the driver.
      results = [messages.Failure(_as_sent(error))] * (1 + len(call.starts))
    return results if call.starts else results[0]

  def continue_group(
    self, execution: int, stage: int, clients: Sequence[int], totals: Any
  ) -> Any:
    """Adds clients of a group to the totals of its earlier members."""
    if isinstance(totals, messages.Failure):
      return totals
    try:
      with tf.device(self._device):
        return self._executions[execution].accumulate(stage, clients, totals)
    except Exception as error:
      return messages.Failure(_as_sent(error))

  def end(self, execution: int) -> None:
    """Forgets an execution."""
    self._executions.pop(execution, None)
    self._stopped.discard(execution)

  def _run_stage(self, call, large):
    self._receive(call)
    compiled = self._programs[call.program]
    execution = self._executions.setdefault(
      call.execution,
      _Execution(
        self._clients,
        functools.partial(self._stopped.__contains__, call.execution),
      ),
    )
    stage = compiled.stages[call.stage]
    execution.stages[call.stage] = stage
    execution.scopes[call.stage] = scope = self._scope(
      compiled, stage, call, large
    )
    groups = None
    if call.clients and call.in_groups:
      groups = self._run_groups(execution, stage, scope, call, large)
    if call.clients and groups is None:
      self._run_clients(execution, stage, scope, call, large)
    fetched = {
      name: {
        client: messages.to_message(execution.entries[call.stage][client][i])
        for client in call.clients
      }
      for i, name in enumerate(stage.stage.outputs)
      if name in stage.stage.fetched
    }
    totals = execution.totals(call.stage, call.spans, call.num_clients, groups)
    return [
      messages.StageResult(fetched, totals, self._loaded.take_new()),
      *(execution.accumulate(call.stage, start) for start in call.starts),
    ]

  def _receive(self, call):
    """Keeps what the worker has not got yet, and drops what is unused."""
    for key in call.unused:
      self._kept.pop(key, None)
    for number in call.unused_programs:
      self._programs.pop(number, None)
    new = messages.take_apart(call.values)
    self._kept.update((key, _kept(value)) for key, value in new.items())
    self._loaded.add_loaders(call.loaders)
    if call.program not in self._programs:
      tree = tff.framework.ComputationBuildingBlock.from_proto(call.tree)
      self._programs[call.program] = program.Program(tree, True)

  def _scope(self, compiled, stage, call, large):
    """The inputs that all clients share, and the constants."""
    scope = program.Scope()
    parts = iter(call.parts)
    for name, value_type in stage.stage.inputs.items():
      own = [next(parts) for _ in values.parts(value_type)]
      if all(isinstance(part, messages.Shared) for part in own):
        leaves = [leaf for part in own for leaf in _leaves(part, large)]
        scope[name] = values.build_pack(value_type)(iter(leaves))
    for step in stage.stage.constants:
      scope[step.name] = compiled.evaluate_at_client(step.block, scope)
    return scope

  def _run_groups(self, execution, stage, scope, call, large):
    """The totals of groups; None if there are none, see `run_groups`."""
    clients = sorted(call.clients)
    placed = {}
    parts = iter(call.parts)
    for name, value_type in stage.stage.inputs.items():
      own = [(next(parts), t) for t in values.parts(value_type)]
      if name not in scope:
        found = [self._entries(execution, *p, clients, large) for p in own]
        placed[name] = values.join(iter(found), value_type)
    columns = stage.columns(scope.new_child(placed), len(clients))
    return execution.run_groups(call.stage, columns, clients)

  def _entries(self, execution, part, value_type, clients, large):
    """A part of the inputs of some clients."""
    if isinstance(part, messages.Shared):
      return values.build_pack(value_type)(iter(_leaves(part, large)))
    if isinstance(part, messages.OfStage):
      kept = execution.entries[part.stage]
      return [kept[client][part.output] for client in clients]
    return [self._value(part.entries[c], value_type.member) for c in clients]

  def _run_clients(self, execution, stage, scope, call, large):
    columns = []
    types = [t for _, t in stage.stage.inputs.items() for t in values.parts(t)]
    for part, value_type in zip(call.parts, types, strict=True):
      if isinstance(part, messages.Shared):
        columns += map(values.AllEqual, _leaves(part, large))
        continue
      if isinstance(part, messages.OfStage):
        kept = execution.entries[part.stage]
        columns.append(
          {
            client: functools.partial(values.flatten, kept[client][part.output])
            for client in call.clients
          }
        )
      else:
        columns.append(
          {
            client: functools.partial(
              self._load, part.entries[client], value_type.member
            )
            for client in call.clients
          }
        )
    for step in stage.stage.constants:
      # The same for all: their number does not matter.
      columns += values.columns(scope[step.name], step.block.type_signature, 1)
    execution.run(call.stage, columns, call.clients)

  def _load(self, message, value_type):
    """The leaves of a client's entry."""
    return values.flatten(self._value(message, value_type))

  def _value(self, message, value_type):
    """A client's entry."""
    if isinstance(message, messages.Reference):
      return self._loaded(message, value_type)
    return messages.from_message(message, self._kept)


class _Execution:
  """A worker's state of one execution."""

  def __init__(
    self, clients: local_clients.LocalClients, is_stopped: Callable[[], bool]
  ) -> None:
    self._clients = clients
    self._is_stopped = is_stopped
    self._devices: dict[int, str] = {}
    self.stages: dict[int, client_stage.ClientStage] = {}
    self.scopes: dict[int, Mapping[str, Any]] = {}
    # Stage -> client -> its entry of each output and of each aggregation.
    self.entries: dict[int, dict[int, list[Any]]] = {}

  def run(
    self, number: int, columns: Sequence[Any], clients: Sequence[int]
  ) -> None:
    """Runs a stage for some clients, and keeps their entries.

    A client's entry is a function that is called where the client runs, so that
    few are loaded at a time.
    """
    stage = self.stages[number]

    def run(parts):
      self._check()
      leaves = [part() if callable(part) else [part] for part in parts]
      return stage(list(itertools.chain.from_iterable(leaves)))

    new = [client for client in clients if client not in self._devices]
    if new:
      self._devices.update(self._clients.deal(new))
    devices = {client: self._devices[client] for client in clients}
    self.entries.setdefault(number, {}).update(
      self._clients.run_clients(run, columns, devices)
    )

  def run_groups(
    self,
    number: int,
    columns: client_stage.Columns,
    clients: Sequence[int],
  ) -> list[dict[aggregation.Span, Any]] | None:
    """Runs a stage for whole groups of clients, and keeps their entries.

    Takes the inputs of these clients, ascending. Returns the totals of
    `LocalClients.run_groups`, None if the clients must run one by one.
    """
    stage = self.stages[number]
    groups = {}
    for group, own in itertools.groupby(
      range(len(clients)), lambda i: clients[i] // aggregation.GROUP_SIZE
    ):
      positions = list(own)
      groups[group] = range(positions[0], positions[-1] + 1)
    functions = [a.functions(self.scopes[number]) for a in stage.aggregations]
    found = self._clients.run_groups(
      stage, columns, functions, groups, self._check
    )
    if found is None:
      return None
    entries, totals = found
    self.entries.setdefault(number, {}).update(
      zip(clients, entries, strict=True)
    )
    return totals

  def _check(self):
    if self._is_stopped():
      raise RuntimeError('An execution must go on, found one that is stopped.')

  def totals(
    self,
    number: int,
    spans: Sequence[aggregation.Span],
    num_clients: int,
    parts: Sequence[dict[aggregation.Span, Any]] | None = None,
  ) -> list[dict[aggregation.Span, Any]]:
    """For each aggregation of a stage, the total of each span of groups.

    Takes what `run_groups` returned, if the clients ran in groups.
    """
    found = []
    for i, aggregated in enumerate(self.stages[number].aggregations):
      functions = aggregated.functions(self.scopes[number])
      if parts is None:
        groups = {
          (group, group + 1): self._accumulate(
            number,
            i,
            functions,
            functions.zero,
            aggregation.members(group, num_clients),
          )
          for span in spans
          for group in range(*span)
        }
      else:
        groups = parts[i]
      found.append(
        {
          span: messages.to_message(
            aggregated.merge(functions.merge, groups, span)
          )
          for span in spans
        }
      )
    return found

  def accumulate(
    self, number: int, clients: Sequence[int], totals: Any = None
  ) -> tuple[Any, ...]:
    """For each aggregation, a total with some clients added, as it is sent."""
    found = []
    for i, aggregated in enumerate(self.stages[number].aggregations):
      functions = aggregated.functions(self.scopes[number])
      total = functions.zero
      if totals is not None:
        total = messages.from_message(totals[i])
      total = self._accumulate(number, i, functions, total, clients)
      found.append(messages.to_message(total))
    return tuple(found)

  def _accumulate(self, number, i, functions, total, clients):
    stage, entries = self.stages[number], self.entries[number]
    position = len(stage.stage.outputs) + i
    return self._clients.accumulate(
      stage.aggregations[i],
      functions,
      total,
      {client: entries[client][position] for client in clients},
      self._devices,
    )


def _kept(value) -> Any:
  """A value as it is kept: graphs are loaded once."""
  if isinstance(value, tuple):
    return tuple(map(_kept, value))
  return (
    messages.load_dataset(value) if isinstance(value, np.ndarray) else value
  )


def _leaves(part, large) -> list[Any]:
  """The tensors of a part that all clients share."""
  return [
    messages.from_message(
      large[leaf.position] if isinstance(leaf, messages.InArgument) else leaf
    )
    for leaf in part.leaves
  ]


def _as_sent(error: Exception) -> Exception:
  """An error that can be sent, and whose message is one line."""
  if isinstance(error, tf.errors.OpError):
    return failed_computation.one_line(error)
  try:
    cloudpickle.loads(cloudpickle.dumps(error))
  except Exception:
    return RuntimeError(f'{type(error).__name__}: {error}')
  return error
