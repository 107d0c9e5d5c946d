"""The table of what a run needs, for printing."""

from collections.abc import Sequence

from tff_fair.launchers.runs import requirements

_UNITS = ('B', 'kB', 'MB', 'GB', 'TB', 'PB')
# Part of the state -> what the table calls it.
_STATE_PARTS = {
  'global_model_weights': 'global model',
  'distributor': 'distributor',
  'client_work': 'client work without the table',
  'aggregator': 'aggregation rule',
  'finalizer': 'finalizer',
}

# A name, a number with its unit, and a note.
_Row = tuple[str, str, str]


def to_text(needed: requirements.Requirements, device_memory_gb: float) -> str:
  """The table of what a run needs.

  Args:
    needed: The result of `requirements.of_run`.
    device_memory_gb: Memory of a device, in units of 10^9 bytes.

  Returns:
    Lines of text: a name, a number with its unit, and a note.
  """
  groups = {
    'Model': _model_rows(needed),
    'State of the server': _state_rows(needed),
    'Traffic of a round, if workers train the clients': _traffic_rows(needed),
    'Memory of a round': _memory_rows(needed),
    f'Clients that fit into {device_memory_gb:g} GB at the same time': (
      _fit_rows(needed, device_memory_gb * 1e9)
    ),
  }
  rows = [row for group in groups.values() for row in group]
  names, numbers = (max(len(row[i]) for row in rows) for i in (0, 1))
  lines = []
  for title, group in groups.items():
    lines.append(f'{title}:')
    for name, number, note in group:
      line = f'  {name:{names}}  {number:>{numbers}}  {note}'
      lines.append(line.rstrip())
  return '\n'.join(lines)


def _model_rows(needed) -> Sequence[_Row]:
  return (
    ('trainable parameters', f'{needed.trainable:,}', ''),
    ('other parameters', f'{needed.non_trainable:,}', ''),
  )


def _state_rows(needed) -> Sequence[_Row]:
  row = needed.table / needed.num_clients
  return (
    *((_STATE_PARTS[n], _unit(size), '') for n, size in needed.state.items()),
    (
      'client table',
      _unit(needed.table),
      f'{needed.num_clients:,} rows of {_unit(row)}' if row else '',
    ),
    ('all', _unit(needed.whole_state), ''),
  )


def _traffic_rows(needed) -> Sequence[_Row]:
  messages, calls = needed.messages, needed.num_calls
  clients = calls * needed.cohort_size
  sums = calls * needed.num_sums
  each = f'{clients:,} clients, {{}} each'
  data = needed.data / needed.num_clients
  return (
    ('broadcast, to each worker', _unit(calls * messages.broadcast), ''),
    (
      'rows of the table, to the workers',
      _unit(clients * messages.row),
      each.format(_unit(messages.row)),
    ),
    (
      "clients' data, to the workers",
      _unit(clients * data),
      f'{each.format(_unit(data))} on average, if a worker has none of them',
    ),
    (
      'sums, to the server',
      _unit(sums * messages.summed),
      f'{sums:,} of {_unit(messages.summed)}',
    ),
    (
      'values of single clients, to the server',
      _unit(clients * messages.gathered),
      each.format(_unit(messages.gathered)),
    ),
  )


def _memory_rows(needed) -> Sequence[_Row]:
  one = needed.training
  batch = f'a batch of {needed.batch_size:,}'
  return (
    ('state, before and after', _unit(2 * needed.whole_state), ''),
    ('from the clients', _unit(needed.received), ''),
    ("server's validation examples", _unit(needed.validation), ''),
    ('all that the server needs', _unit(needed.server), ''),
    ('one client that trains', _unit(one.total), 'an estimate, the sum of:'),
    ('  its row of the table', _unit(one.row), ''),
    ('  weights', _unit(one.weights), 'before and after a step'),
    ('  gradients', _unit(one.gradients), ''),
    ("  optimiser's state", _unit(one.optimizer), ''),
    ('  update, new row and report', _unit(one.upload), ''),
    ('  examples', _unit(one.examples), 'the largest client'),
    ('  activations', _unit(one.activations), f'{batch}, forward and backward'),
  )


def _fit_rows(needed, memory) -> Sequence[_Row]:
  return [
    (name, f'{needed.clients_at_once(memory, with_state):,}', note)
    for with_state, name, note in (
      (
        True,
        'on the device that holds the state',
        f'{needed.cohort_size:,} train in a round',
      ),
      (False, 'on a device that only trains clients', ''),
    )
  ]


def _unit(number: float) -> str:
  """Bytes with their unit, a power of 1,000."""
  power = 0
  while number >= 999.95 and power < len(_UNITS) - 1:
    number, power = number / 1000, power + 1
  return f'{number:.{min(power, 1)}f} {_UNITS[power]}'
