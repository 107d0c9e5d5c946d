"""How much of FedAKD's accuracy and lead is a protocol like its scripts'.

The scripts of FedAKD's authors do not train and score all methods alike. The
table `fedakd_protocols` has the methods with the split, the rounds and the
scored model of their own scripts, FedAKD with FedAvg's, and FedAvg with
FedAKD's. It does not have the scripts' partition, and none of the scripts was
run.
"""

from collections.abc import Mapping
import dataclasses

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming import fedakd_claims
from tff_fair.launchers.claiming import recorded as recorded_lib
from tff_fair.launchers.claiming import statistics
from tff_fair.launchers.tables import definitions as tables
from tff_fair.launchers.tables import published

METRIC = 'client_accuracy_mean'
"""The metric that the table compares."""

_AVG, _AVG_OTHER = 'fed_avg', 'fed_avg_fedakd_protocol'
_OWN, _OTHER = 'fedakd_own_protocol', 'fedakd_fed_avg_protocol'
_LOCAL = 'fedakd_local_fed_avg_protocol'

DIFFERENCES: Mapping[str, tuple[str, str]] = {
  'lead of FedAKD, each under its own protocol': (_OWN, _AVG),
  "lead, both under FedAvg's protocol": (_OTHER, _AVG),
  "lead, both under FedAvg's protocol, FedAKD by the clients' own models": (
    _LOCAL,
    _AVG,
  ),
  "lead, both under FedAKD's protocol": (_OWN, _AVG_OTHER),
  'what its protocol adds to FedAKD': (_OWN, _OTHER),
  'what the same protocol adds to FedAvg': (_AVG_OTHER, _AVG),
}
"""Title -> the methods whose difference it is."""


@dataclasses.dataclass(frozen=True)
class Cell:
  """The differences in a cell.

  Attributes:
    name: The cell.
    differences: Title -> difference.
    papers: What the paper prints for FedAKD and for FedAvg.
  """

  name: str
  differences: Mapping[str, statistics.Measured]
  papers: tuple[float, float]


def measure(recorded: recorded_lib.Recorded) -> list[Cell]:
  """Measures the differences.

  Args:
    recorded: The recorded results.

  Returns:
    The cells that have rows.
  """
  name = fedakd_claims.PROTOCOLS
  wanted = {
    (cell, title): definitions.versus(name, [cell], [left], [right], [METRIC])[
      0
    ]
    for cell in tables.TABLES[name].cells
    for title, (left, right) in DIFFERENCES.items()
  }
  found = statistics.measure(wanted.values(), recorded)
  numbers = published.read()
  cells = [
    Cell(
      cell,
      {title: found[wanted[cell, title]] for title in DIFFERENCES},
      tuple(
        numbers[published.key(name, cell, method, METRIC)].value
        for method in (_OWN, _AVG)
      ),
    )
    for cell in tables.TABLES[name].cells
  ]
  return [
    cell
    for cell in cells
    if any(m.outcome != 'missing' for m in cell.differences.values())
  ]
