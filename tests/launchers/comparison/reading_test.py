import json
import math
import re

import pytest

from tests.launchers.comparison import made_comparison
from tff_fair.launchers.comparison import reading


def test_a_table_as_it_was_written(tmp_path):
  rows = made_comparison.rows(
    scores={'fed_avg': [[0.5, None], [0.1 + 0.2, 1]]}, seeds=(0, 1)
  )
  about = made_comparison.facts((0, 1), 2)
  frame, facts = reading.read(*made_comparison.write(tmp_path, rows, about))
  assert facts == about
  assert frame['chosen'].tolist() == [False, True, True]
  found = reading.results(frame)
  first, second = found['client_accuracies']
  assert first[0] == 0.5 and math.isnan(first[1])
  assert second == (0.1 + 0.2, 1)
  assert frame['client_accuracy_mean'].tolist()[1:] == [
    0.5,
    (0.1 + 0.2 + 1) / 2,
  ]
  assert math.isnan(frame['client_accuracy_mean'][0])
  assert frame['parameters'][0] == ''
  assert found['curve'].iloc[0]['rounds'] == [1, 2, 3, 4, 5, 6]


def _with(row=-1, **changes):
  rows = made_comparison.rows()
  rows[row] = {**rows[row], **changes}
  return rows


_HALF_CURVE = '{"rounds": [1, 2], "mean": [0.5], "worst10": [0.1, 0.2]}'


@pytest.mark.parametrize(
  'rows,message',
  [
    ([], 'must have a row for each run, found none'),
    (_with(client_accuracies='[0.5'), 'client_accuracies in row 20 cannot be'),
    (_with(curve='[1]'), 'curve in row 20 cannot be read'),
    (_with(curve=_HALF_CURVE), 'curve in row 20 cannot be read'),
    (_with(cf='high'), "cf in row 20 cannot be read, found 'high'"),
    (_with(cf=math.inf), 'cf in row 20 cannot be read'),
    (_with(trial='?'), "trial in row 20 cannot be read, found '?'"),
    (_with(chosen='yes'), 'chosen in row 20 cannot be read'),
    (_with(status='lost'), 'status in row 20 cannot be read'),
    (_with(seed=7), 'must have the seeds [0, 1, 2] of its facts, found 7'),
    (_with(seed=1), 'must have one result of standalone with seed 1'),
    (_with(client_accuracies='[0.5]'), 'of 4 clients, found 1 in a row of'),
    (
      made_comparison.rows(methods=['ditto']),
      'must have rows of the baseline fed_avg, found none',
    ),
  ],
)
def test_damaged_rows(tmp_path, rows, message):
  paths = made_comparison.write(tmp_path, rows)
  with pytest.raises(reading.ComparisonError, match=re.escape(message)):
    reading.read(*paths)


@pytest.mark.parametrize(
  'content,message',
  [
    (None, 'must be a file of launchers.compare, found: No such file'),
    (b'\xff', 'found: other bytes than UTF-8'),
    (b'', 'must be a table of comma-separated values'),
    (b'method,seed\n"a', 'must be a table of comma-separated values'),
    (b'method,seed\na,1\n', 'must have the column trial, found none'),
  ],
)
def test_other_tables(tmp_path, content, message):
  csv_path, json_path = made_comparison.write(tmp_path)
  csv_path.unlink()
  if content is not None:
    csv_path.write_bytes(content)
  with pytest.raises(reading.ComparisonError, match=message):
    reading.read(csv_path, json_path)


@pytest.mark.parametrize(
  'text,message',
  [
    (None, 'must be a file of launchers.compare, found: No such file'),
    ('{"seeds": [0', 'must be JSON, found: '),
    ('[1]', 'must be a JSON object, found list'),
    ('{}', "version must be of type str, found 'nothing'"),
    (
      json.dumps(made_comparison.facts(seeds=())),
      'seeds must not be empty',
    ),
    (
      json.dumps(made_comparison.facts(seeds=[0], rounds='many')),
      "rounds must be of type int, found 'many'",
    ),
    *(
      (
        json.dumps(made_comparison.facts(seeds=[0], test_examples=sizes)),
        'test_examples must have a list of 4 sizes for each of 1 seeds, found',
      )
      for sizes in (
        [],
        [5, 5, 5, 5],
        [[5, 5, 5]],
        [[5, 5, 5, -1]],
        [[5, 5, 5, 0.5]],
        [[5, 5, 5, 5], [5, 5, 5, 5]],
        'many',
      )
    ),
  ],
)
def test_damaged_facts(tmp_path, text, message):
  csv_path, json_path = made_comparison.write(tmp_path)
  json_path.unlink()
  if text is not None:
    json_path.write_text(text)
  with pytest.raises(reading.ComparisonError, match=message):
    reading.read(csv_path, json_path)
