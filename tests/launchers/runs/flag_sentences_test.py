"""Errors of tasks and builders, said of the flags."""

from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import flag_sentences


def test_errors_of_arguments_are_said_of_their_flags():
  for sentence, expected in (
    ('seed must be at least 0, found -1.', '--data_seed must be at least 0,'),
    ('shift must be finite', '--shift must be finite'),
    (
      "remainder='drop' must leave num_clients * min_samples = 4 examples",
      "--dirichlet_remainder='drop' must leave --num_clients * --min_samples",
    ),
    ('The split must be', 'The split must be'),
    ("The file 'num_clients/x.num_clients'", "The file 'num_clients/x.num_cl"),
  ):
    assert flag_sentences.of_task(sentence).startswith(expected), sentence
  for algorithm, sentence, expected in (
    ('fedaboost', 'seed must be', '--client_seed must be'),
    ('fedaboost', 'max_gamma must be', '--max_gamma must be'),
    ('fedquad', 'margins must be', 'margins must be'),
    ('ditto', 'client_weight_decay must', '--client_weight_decay must'),
  ):
    flag_values = train_flags.parse([f'--algorithm={algorithm}'])
    settings = {n: flag_values[n].value for n in train_flags.FLAG_NAMES}
    found = flag_sentences.of_builder(sentence, settings)
    assert found.startswith(expected), sentence
