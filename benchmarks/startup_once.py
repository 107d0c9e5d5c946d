"""One start of `benchmarks.startup`, in a separate process.

  python -m benchmarks.startup_once NAME_AND_OPTIONS

The argument is JSON, `[implementation, {runtime: {option: value}}]`. Prints
JSON, phase -> time of its end, in seconds since the epoch.
"""

import json
import sys
import time


def main(argv: list[str]) -> None:
  """Builds workload A for one implementation, and runs its first round."""
  ends = {'start Python': time.time()}
  implementation, options = json.loads(argv[1])
  # The imports are timed: each is a phase.
  import tensorflow  # noqa: F401

  ends['import TensorFlow'] = time.time()
  import tensorflow_federated  # noqa: F401

  ends['import TFF'] = time.time()
  from benchmarks import workloads

  ends['import tff_fair'] = time.time()
  setup = workloads.build_setup([implementation], options)
  ends['create runtime'] = time.time()
  run_round = workloads.a(setup)[implementation]
  ends['build process'] = time.time()
  run_round()
  ends['first round'] = time.time()
  print(json.dumps(ends))


if __name__ == '__main__':
  main(sys.argv)
