"""One execution of a computation: its clients on the workers."""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import itertools
from typing import Any, NamedTuple

import ray
import tree

from tff_fair.runtime import worker_error
from tff_fair.runtime.cluster import client_values
from tff_fair.runtime.cluster import dealing
from tff_fair.runtime.cluster import messages
from tff_fair.runtime.cluster import pool as pool_lib
from tff_fair.runtime.device import aggregation
from tff_fair.runtime.device import client_stage
from tff_fair.runtime.device import values

# Leaves of at least so many bytes go through Ray's object store.
_LARGE_BYTES = 100_000
_ATTEMPTS = 3

_numbers = itertools.count()


@dataclasses.dataclass(frozen=True)
class AtWorkers:
  """A client-placed value that is where its clients ran.

  Attributes:
    stage: The number of the stage that made it.
    output: The number of the output.
  """

  stage: int
  output: int


@dataclasses.dataclass
class _Inputs:
  """The inputs of a stage, kept for clients that have to run again.

  Attributes:
    parts: As they are sent, but with the entries of all clients.
    large: References to the large leaves.
    large_bytes: Their size.
  """

  parts: list[Any]
  large: list[Any]
  large_bytes: int = 0


class SentProgram(NamedTuple):
  """A computation that workers get.

  Attributes:
    number: Its number.
    tree: The compiled computation, a proto.
  """

  number: int
  tree: Any


class Execution:
  """Runs the stages of one execution on the workers.

  Clients stay at their worker from stage to stage. If a worker is lost, its
  clients run all stages so far again, on the others: they are functions of
  their inputs, so nobody can tell.

  Attributes:
    bytes_sent: Bytes of arrays that went to workers.
    bytes_received: Bytes of arrays that came back.
  """

  def __init__(
    self,
    program: SentProgram,
    pool: pool_lib.Pool,
    sent: client_values.ClientValues,
    clients: Sequence[Any],
  ):
    """Deals the clients to workers.

    Args:
      program: The computation.
      pool: The workers.
      sent: What the workers have of clients.
      clients: The value of each client in the argument.
    """
    self.bytes_sent = self.bytes_received = 0
    self._number = next(_numbers)
    self._program = program
    self._pool = pool
    self._sent = sent
    self._keys = [sent.key(client) for client in clients]
    self._sizes = [sent.size(client) for client in clients]
    self._worker_of: dict[int, pool_lib.Worker] = {}
    self._used: set[pool_lib.Worker] = set()
    self._inputs: list[_Inputs] = []
    # For each stage the clients that have run, and where.
    self._done: list[dict[int, pool_lib.Worker]] = []

  def run_stage(
    self,
    stage: client_stage.ClientStage,
    scope: Mapping[str, Any],
    num_clients: int,
  ) -> dict[str, Any]:
    """Runs a stage; see `LocalClients.run_stage`.

    Raises:
      WorkerError: If too many workers are lost.
    """
    functions = [a.functions(scope) for a in stage.aggregations]
    names = stage.stage.outputs
    fetched = {name: {} for name in names if name in stage.stage.fetched}
    totals = [{} for _ in functions]
    number = len(self._done)
    self._done.append({})
    self._inputs.append(self._gather_inputs(stage, scope))
    if num_clients:
      self._retry(number, num_clients, fetched, totals)
    outputs = {
      name: [fetched[name][client] for client in range(num_clients)]
      if name in fetched
      else AtWorkers(number, i)
      for i, name in enumerate(names)
    }
    for aggregated, own, found in zip(
      stage.aggregations, functions, totals, strict=True
    ):
      # Each total only now, as it may be large.
      outputs[aggregated.name] = own.finish(found, num_clients)
    return outputs

  def end(self) -> None:
    """Lets the workers forget the execution."""
    for worker in self._used:
      worker.actor.end.remote(self._number)

  def _retry(self, number, num_clients, fetched, totals):
    """Runs a stage until no worker is lost meanwhile."""
    for _ in range(max(_ATTEMPTS, len(self._pool.workers) + 1)):
      self._deal(num_clients)
      try:
        for earlier in range(number):
          self._run(earlier, num_clients)
        return self._run(number, num_clients, fetched, totals)
      except pool_lib.LostWorkersError:
        continue
    raise worker_error.WorkerError(
      'A round must not lose its workers again and again, found that it does:'
      ' perhaps one of its clients ends them.'
    )

  def _deal(self, num_clients):
    """Gives a worker to the clients that have none, or a lost one."""
    workers = self._pool.ready_workers()
    lost = [
      client
      for client in range(num_clients)
      if self._worker_of.get(client) not in workers
    ]
    if not lost:
      return
    homes = {i: self._sent.home(self._keys[c]) for i, c in enumerate(lost)}
    dealt = dealing.deal([self._sizes[c] for c in lost], homes, workers)
    for client, worker in zip(lost, dealt, strict=True):
      self._worker_of[client] = worker
      self._sent.move(self._keys[client], worker)

  def _run(self, number, num_clients, fetched=(), totals=()):
    """Runs a stage for the clients that have not, and adds up what is asked."""
    owners = [self._worker_of[client] for client in range(num_clients)]
    new = [
      client
      for client in range(num_clients)
      if self._done[number].get(client) is not owners[client]
    ]
    whole, divided = _find_groups(owners) if totals else ({}, [])
    to_run, starts = (
      collections.defaultdict(list),
      collections.defaultdict(list),
    )
    for client in new:
      to_run[owners[client]].append(client)
    for runs in divided:
      worker, members = runs[0]
      starts[worker].append(members)
    end = aggregation.num_groups(num_clients)
    pending, first_totals = {}, {}
    for worker in dict.fromkeys(owners):
      spans = list(aggregation.spans_within(whole.get(worker, ()), end))
      if not (to_run[worker] or spans or starts[worker]):
        continue
      main, *of_starts = self._call(
        worker, number, num_clients, to_run[worker], spans, starts[worker]
      )
      pending[main] = worker
      for members, reference in zip(starts[worker], of_starts, strict=True):
        first_totals[members[0]] = reference
    calls = list(pending)
    groups = {}
    for runs in divided:
      members = runs[0][1]
      reference = first_totals[members[0]]
      for worker, clients in runs[1:]:
        # Ray sends the total from one worker to the other.
        reference = worker.actor.continue_group.remote(
          self._number, number, clients, reference
        )
      pending[reference] = worker
      group = members[0] // aggregation.GROUP_SIZE
      groups[reference] = group, group + 1
    results = self._pool.collect(pending)
    for result in results.values():
      if isinstance(result, messages.Failure):
        raise result.error
      self.bytes_received += messages.num_bytes(result)
    for reference in calls:
      self._receive(results[reference], fetched, totals)
    for reference, span in groups.items():
      for own, message in zip(totals, results[reference], strict=True):
        own[span] = messages.from_message(message)
    self._done[number].update((client, owners[client]) for client in new)

  def _receive(self, result, fetched, totals):
    for name, entries in result.fetched.items():
      if name in fetched:
        for client, message in entries.items():
          fetched[name][client] = messages.from_message(message)
    for own, found in zip(totals, result.totals, strict=True):
      for span, message in found.items():
        own[span] = messages.from_message(message)

  def _call(self, worker, number, num_clients, clients, spans, starts):
    """Asks a worker; the references to what it returns."""
    inputs, program = self._inputs[number], self._program
    call = messages.StageCall(
      execution=self._number,
      program=program.number,
      tree=None if program.number in worker.programs else program.tree,
      stage=number,
      num_clients=num_clients,
      # Big clients first: the last ones then end at the same time.
      clients=sorted(clients, key=lambda c: -self._sizes[c]),
      parts=[],
      spans=spans,
      starts=starts,
      data_sets={},
      loaders={},
      unused=[],
    )
    needed = []
    for part in inputs.parts:
      if isinstance(part, messages.OfClients):
        own = {client: part.entries[client] for client in clients}
        needed += own.values()
        part = messages.OfClients(
          {c: self._sent.send(v, worker, call) for c, v in own.items()}
        )
      call.parts.append(part)
    call.unused.extend(self._sent.drop_unused(worker, needed))
    worker.programs.add(program.number)
    self._used.add(worker)
    self.bytes_sent += messages.num_bytes(call) + inputs.large_bytes
    references = worker.actor.run_stage.options(
      num_returns=1 + len(starts)
    ).remote(call, *inputs.large)
    return references if starts else [references]

  def _gather_inputs(self, stage, scope):
    """The inputs of a stage; what is large goes into Ray's object store."""
    inputs = _Inputs([], [])
    for name, value_type in stage.stage.inputs.items():
      for part, part_type in zip(
        values.split(scope[name], value_type),
        values.parts(value_type),
        strict=True,
      ):
        inputs.parts.append(self._gather_part(part, part_type, inputs))
    return inputs

  def _gather_part(self, part, part_type, inputs):
    if isinstance(part, AtWorkers):
      return messages.OfStage(part.stage, part.output)
    if values.is_different_at_clients(part_type):
      return messages.OfClients(dict(enumerate(part)))
    if isinstance(part, values.AllEqual):
      part = part.value
    leaves = []
    for leaf in tree.flatten(messages.to_message(part)):
      size = messages.num_bytes(leaf)
      if size >= _LARGE_BYTES:
        inputs.large_bytes += size
        inputs.large.append(ray.put(leaf))
        leaf = messages.InArgument(len(inputs.large) - 1)
      leaves.append(leaf)
    return messages.Shared(leaves)


def _find_groups(owners):
  """Which groups are whole at a worker.

  Args:
    owners: The worker of each client.

  Returns:
    Worker -> its groups; and of each other group the runs of clients that are
    at the same worker, `(worker, clients)`.
  """
  whole, divided = collections.defaultdict(set), []
  for group in range(aggregation.num_groups(len(owners))):
    members = aggregation.members(group, len(owners))
    runs = [
      (worker, list(clients))
      for worker, clients in itertools.groupby(members, owners.__getitem__)
    ]
    if len(runs) == 1:
      whole[runs[0][0]].add(group)
    else:
      divided.append(runs)
  return whole, divided
