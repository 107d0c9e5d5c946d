"""The columns of compare.csv.

method, seed, trial       the run; trials count from 0
chosen                    whether the row is a result; the other trials have
                          no scores on test data
status                    finished or diverged
learning_rate, parameters what the trial has set
rounds                    rounds of the run
holdout_accuracy          mean over the clients' holdout parts
client_*, global_accuracy scores on test data after the last round; these, cf
                          and better_off are of all clients that have some, see
                          `client_scores` for those that pages leave out
cf                        CF coefficient against Standalone of the same seed
better_off                share of the clients above Standalone's accuracy
target, rounds_to_target  an accuracy, and the first evaluation that has it
bytes_down, bytes_up      of a round, all clients together
seconds_per_round         the median
client_accuracies         JSON, a number or null for each client
curve                     JSON: rounds, mean and worst10 of the evaluations
command                   the command of `launchers.train`
"""

SCORES = (
  'client_accuracy_mean',
  'client_accuracy_worst10',
  'client_accuracy_min',
  'client_accuracy_variance',
  'client_accuracy_jain',
  'client_f1_mean',
)
"""Those that a run writes itself."""

_MEASURES = (
  'holdout_accuracy',
  *SCORES,
  'global_accuracy',
  'cf',
  'better_off',
  'target',
  'rounds_to_target',
  'bytes_down',
  'bytes_up',
  'seconds_per_round',
)
TEXTS = ('method', 'status', 'parameters', 'command')
WHOLE = ('seed', 'trial')
NUMBERS = ('learning_rate', 'rounds', *_MEASURES)
"""Those that are numbers, or empty."""

COLUMNS = (
  'method',
  *WHOLE,
  'chosen',
  'status',
  'learning_rate',
  'parameters',
  'rounds',
  *_MEASURES,
  'client_accuracies',
  'curve',
  'command',
)
"""All, in the order of the file."""
