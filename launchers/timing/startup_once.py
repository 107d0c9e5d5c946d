"""One start of `launchers.timing.startup`, in a process of its own.

  python -m launchers.timing.startup_once CONTENDER_AND_OPTIONS

The argument is JSON, `[contender, {option: value}]`. Prints JSON, phase -> the
time at its end, in seconds since the epoch.
"""

import json
import sys
import time


def main(argv: list[str]) -> None:
  """Builds work A for one contender, and runs its first round."""
  ends = {'start Python': time.time()}
  contender, options = json.loads(argv[1])
  # Imports are what is timed: each stands after the end of the last phase.
  import tensorflow  # noqa: F401

  ends['import TensorFlow'] = time.time()
  import tensorflow_federated  # noqa: F401

  ends['import TFF'] = time.time()
  from launchers.timing import workloads

  ends['import tff_fair'] = time.time()
  setup = workloads.build_setup([contender], options)
  run_round = workloads.fed_avg_mlp(setup)[contender]
  ends['build process'] = time.time()
  run_round()
  ends['first round'] = time.time()
  print(json.dumps(ends))


if __name__ == '__main__':
  main(sys.argv)
