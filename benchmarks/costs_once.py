"""One point of `benchmarks.costs`, in a separate process.

  python -m benchmarks.costs_once CLIENTS_EXAMPLES_WEIGHTS_AND_ROUNDS

The argument is JSON, `[clients, examples, weights, rounds]`. Prints JSON,
`[seconds, MiB, weights]`: the median of the rounds after the first two, the
peak of the process's memory less what it had before the data were made, and the
model's real size.
"""

import json
import resource
import sys

from benchmarks import round_times
from benchmarks import workloads


def main(argv: list[str]) -> None:
  """Times the rounds, and measures the memory."""
  num_clients, num_examples, weights, rounds = json.loads(argv[1])
  setup = workloads.build_setup(['device'], {})
  before = _peak()
  found, weights = workloads.of_size(setup, num_clients, num_examples, weights)
  times = {'costs': round_times.time_rounds('costs', found, rounds)}
  seconds = round_times.summarize(times)['median_seconds'].item()
  print(json.dumps([seconds, _peak() - before, weights]))


def _peak() -> float:
  """The largest memory of this process so far, in MiB."""
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == '__main__':
  main(sys.argv)
