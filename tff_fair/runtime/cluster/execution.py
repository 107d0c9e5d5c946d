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
from tff_fair.runtime.device import local_clients
from tff_fair.runtime.device import values

# Leaves of at least so many bytes go through Ray's object store.
_LARGE_BYTES = 100_000
# How often a client may lose its worker.
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

  Clients stay at their worker from stage to stage. Many small ones are dealt in
  groups, so that none is divided and workers run them as such. If a worker is
  lost, its clients run all stages so far again, on the others: they are
  functions of their inputs, so nobody can tell.

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
  ) -> None:
    """Deals the clients to workers."""
    self.bytes_sent = self.bytes_received = 0
    self._number = next(_numbers)
    self._program = program
    self._pool = pool
    self._sent = sent
    self._clients = list(map(sent.client, clients))
    self._in_groups = local_clients.are_many(
      len(clients), pool.client_threads
    ) and local_clients.are_small([c.num_bytes for c in self._clients])
    self._worker_of: dict[int, pool_lib.Worker] = {}
    self._losses: collections.Counter[int] = collections.Counter()
    self._used: set[pool_lib.Worker] = set()
    self._running = False
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
      outputs[aggregated.name] = aggregated.result(own, found, num_clients)
    return outputs

  def end(self) -> None:
    """Lets the workers forget the execution, also what they still run of it."""
    if self._pool.is_connected():
      for worker in self._used:
        if self._running:
          worker.actor.stop.remote(self._number)
        worker.actor.end.remote(self._number)

  def _retry(self, number, num_clients, fetched, totals):
    """Runs a stage until no worker is lost meanwhile."""
    while True:
      self._deal(num_clients)
      try:
        for earlier in range(number):
          self._run(earlier, num_clients)
        return self._run(number, num_clients, fetched, totals)
      except pool_lib.LostWorkersError as error:
        self._count_losses(error)

  def _count_losses(self, error):
    """Raises if it is always the same clients whose worker is lost."""
    workers = set(self._pool.workers)
    lost = [c for c, w in self._worker_of.items() if w not in workers]
    # Without any, what is lost may be a result, or the way to a worker.
    self._losses.update(lost or self._worker_of)
    client, times = self._losses.most_common(1)[0]
    if times >= _ATTEMPTS:
      raise worker_error.WorkerError(
        'The clients of a round must not end their workers, found that'
        f' {times} workers in turn were lost that ran client {client} of the'
        f' list, or another one that was there: {error}'
      ) from error

  def _deal(self, num_clients):
    """Gives a worker to the clients that have none, or a lost one."""
    workers = self._pool.ready_workers()
    ready = set(workers)
    lost = [
      client
      for client in range(num_clients)
      if self._worker_of.get(client) not in ready
    ]
    if not lost:
      return
    sizes = [self._clients[client].work for client in lost]
    if self._in_groups:
      groups = [client // aggregation.GROUP_SIZE for client in lost]
      dealt = dealing.deal_groups(sizes, groups, workers)
    else:
      homes = {
        i: self._sent.home(self._clients[client].key)
        for i, client in enumerate(lost)
      }
      dealt = dealing.deal(sizes, homes, workers)
    for client, worker in zip(lost, dealt, strict=True):
      self._worker_of[client] = worker
      self._sent.move(self._clients[client].key, worker)

  def _run(self, number, num_clients, fetched=(), totals=()):
    """Runs a stage for the clients that have not, and adds up what is asked."""
    owners = [self._worker_of[client] for client in range(num_clients)]
    done = self._done[number]
    to_run = collections.defaultdict(list)
    for client, worker in enumerate(owners):
      if done.get(client) is not worker:
        to_run[worker].append(client)
    missing = set()
    if totals:
      # Others came before a worker was lost.
      missing.update(range(aggregation.num_groups(num_clients)))
      missing.difference_update(*itertools.starmap(range, totals[0]))
    whole, divided = _find_groups(owners, missing)
    starts = collections.defaultdict(list)
    for runs in divided:
      starts[runs[0][0]].append(runs)
    end = aggregation.num_groups(num_clients)
    calls: dict[Any, pool_lib.Worker] = {}
    chains = _Chains(self._number, number)
    for worker in dict.fromkeys(owners):
      spans = list(aggregation.spans_within(whole.get(worker, ()), end))
      if to_run[worker] or spans or starts[worker]:
        members = [runs[0][1] for runs in starts[worker]]
        main, *firsts = self._call(
          worker, number, num_clients, to_run[worker], spans, members
        )
        calls[main] = worker
        chains.add(firsts, starts[worker])
    self._running = True
    for reference, result in self._pool.results(
      calls | chains.workers(), chains.follow
    ):
      if isinstance(result, messages.Failure):
        raise result.error
      self.bytes_received += messages.num_bytes(result)
      if reference in calls:
        worker = calls[reference]
        done.update((client, worker) for client in to_run[worker])
        self._receive(result, fetched, totals)
      else:
        for own, message in zip(totals, result, strict=True):
          own[chains.span(reference)] = messages.from_message(message)
    self._running = False

  def _receive(self, result, fetched, totals):
    self._sent.learn(result.loaded)
    for name, entries in result.fetched.items():
      if name in fetched:
        for client, message in entries.items():
          fetched[name][client] = messages.from_message(message)
    # Without totals if a stage runs again for a later one.
    for own, found in zip(totals, result.totals, strict=bool(totals)):
      for span, message in found.items():
        own[span] = messages.from_message(message)

  def _call(self, worker, *arguments):
    """Asks a worker; the references to what it returns."""
    try:
      return self._send(worker, *arguments)
    except BaseException:
      # Nobody knows what of it was sent.
      worker.forget()
      raise

  def _send(self, worker, number, num_clients, clients, spans, starts):
    inputs, program = self._inputs[number], self._program
    parcel = client_values.Parcel(worker)
    parts = [
      messages.OfClients(
        {c: self._sent.send(part.entries[c], parcel) for c in clients}
      )
      if isinstance(part, messages.OfClients)
      else part
      for part in inputs.parts
    ]
    call = messages.StageCall(
      execution=self._number,
      program=program.number,
      tree=None if program.number in worker.programs else program.tree,
      stage=number,
      num_clients=num_clients,
      # Big clients first: the last ones then end at the same time.
      clients=sorted(clients, key=lambda c: -self._clients[c].work),
      in_groups=self._in_groups,
      parts=parts,
      spans=spans,
      starts=starts,
      values=messages.join(parcel.values),
      loaders=parcel.loaders,
      unused=self._sent.drop_unused(parcel),
      unused_programs=worker.unused_programs,
    )
    worker.unused_programs = []
    worker.programs.add(program.number)
    self._used.add(worker)
    references = worker.actor.run_stage.options(
      num_returns=1 + len(starts)
    ).remote(call, *inputs.large)
    self.bytes_sent += messages.num_bytes(call) + inputs.large_bytes
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


class _Chains:
  """Groups that are divided among workers: each adds its clients in turn."""

  def __init__(self, execution: int, stage: int) -> None:
    """Has no groups yet."""
    self._execution, self._stage = execution, stage
    # Reference to a group's total so far -> its last run of clients, and the
    # runs that are left, each `(worker, clients)`.
    self._runs: dict[Any, list[Any]] = {}

  def add(self, references: Sequence[Any], groups: Sequence[Any]) -> None:
    """Adds groups: references to the totals of their first runs, all runs."""
    self._runs.update(zip(references, groups, strict=True))

  def workers(self) -> dict[Any, pool_lib.Worker]:
    """Reference -> the worker that was called."""
    return {reference: runs[0][0] for reference, runs in self._runs.items()}

  def span(self, reference: Any) -> aggregation.Span:
    """The group of a reference."""
    group = self._runs[reference][0][1][0] // aggregation.GROUP_SIZE
    return group, group + 1

  def follow(self, reference: Any) -> tuple[Any, pool_lib.Worker] | None:
    """Lets the next worker continue a group; Ray sends it the total.

    Returns the reference to the next total and its worker, or None at the end.
    """
    if len(self._runs.get(reference, ())) < 2:
      return None
    _, *rest = self._runs.pop(reference)
    worker, clients = rest[0]
    following = worker.actor.continue_group.remote(
      self._execution, self._stage, clients, reference
    )
    self._runs[following] = rest
    return following, worker


def _find_groups(owners, groups):
  """Worker -> the groups that it has whole; and the runs of the others."""
  whole, divided = collections.defaultdict(set), []
  for group in sorted(groups):
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
