"""Tables that somebody may bring: trained on as they stand, or refused."""

import csv
import gzip
import io
import random
import re

import numpy as np
import pytest

from tff_fair import tasks
from tff_fair.tasks import sources

pytestmark = pytest.mark.full

_TABLES = 300
_MISSING = ('', 'NA', 'None', 'nan', '?', 'null', 'N/A')
_KEYS = (
  *('Ulm,Bonn,Jena', '007,7,08', '1e2,100,1', '1,2,3', '01,1,2', '10.0,9.0'),
  *('10,10.0,9', 'Ulm,ulm,Ulm ', 'NA,DE,FR', 'None,mild,severe', '-0,0,1'),
  *('Zürich,Zu\u0308rich,x', '\uff17,7,8', '\u0667,7,8', 'true,True,false'),
  *('2020-01-01,b', '99999999999999999999,99999999999999999998', '"q",\\,x'),
  *('=1+1,@x,-x', 'a\u200b,a', '0.5,1,2', 'a\x01,b,c', 'a\nb,b', '\u202ea,b'),
)


def _cell(rng, kind, i):
  """A text of a column of features."""
  number = rng.choice([-1, 0, 3, 17, 250]) + i % 7
  return {
    'whole': str(number),
    'real': f'{number / 8}',
    'flag': rng.choice(['True', 'False']),
    'letters': rng.choice('abc'),
    'comma': f'{number},5',
    'thousands': f'{abs(number) + 1},000',
    'share': f'{number}%',
    'large': str(10 ** (20 if i == 5 else 2) + i),
    'huge': '1e39' if i == 5 else str(number),
    'infinite': 'inf' if i == 5 else str(number),
    'mixed': 'many' if i == 5 else str(number),
    'flags and numbers': rng.choice(['True', '1', '0']),
    'date': f'2020-01-{i % 28 + 1:02}',
    'time': f'12:{i % 60:02}',
    'zeros': f'00{abs(number)}',
    'id': f'p{i}',
    'constant': '1',
    'empty': '',
    'unicode': rng.choice(['é', 'e\u0301', '東京', '😀']),
    'lines': rng.choice(['a\nb', 'c']),
    'small': f'{number}e-320',
  }[kind]


def _table(rng):
  """The bytes of a file, its name, and its rows as dictionaries."""
  rows = rng.choice([5, 24, 60, 60])
  clients, labels = (rng.choice(_KEYS).split(',') for _ in range(2))
  kinds = rng.sample([*_kinds()], rng.randint(1, 3))
  names = ['client', 'label', *rng.sample(['a', 'b c', 'ü', 'f=1', '7'], 3)]
  names = names[: 2 + len(kinds)]
  if rng.random() < 0.05:
    names[-1] = rng.choice(['label', ' label', 'x\ty', '', 'label.1'])
  gaps = rng.choice([0, 0, 0.1])
  found = []
  for i in range(rows):
    row = [clients[i % len(clients)], labels[(i // 3) % len(labels)]]
    row += [_cell(rng, kind, i) for kind in kinds]
    places = range(len(row)) if rng.random() < 0.3 else range(2, len(row))
    found.append(
      [
        rng.choice(_MISSING) if j in places and rng.random() < gaps else text
        for j, text in enumerate(row)
      ]
    )
  text = io.StringIO()
  writer = csv.writer(
    text,
    lineterminator=rng.choice(['\n', '\r\n']),
    quoting=rng.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    delimiter=rng.choice([*20 * ',', ';', '\t']),
  )
  writer.writerows([names, *found])
  encoding = rng.choice([*20 * ['utf-8'], 'utf-8-sig', 'utf-16', 'cp1252'])
  content = text.getvalue().encode(encoding, 'replace')
  if rng.random() < 0.05:
    content = content[: rng.randrange(len(content))]
  ending = rng.choice(['.csv', '.csv', '.csv.gz'])
  if ending == '.csv.gz':
    content = gzip.compress(content)
  return content, f'own{ending}', found


def _kinds():
  return (
    *('whole', 'real', 'flag', 'letters', 'comma', 'thousands', 'share'),
    *('large', 'huge', 'infinite', 'mixed', 'flags and numbers', 'date'),
    *('time', 'zeros', 'id', 'constant', 'empty', 'unicode', 'lines', 'small'),
  )


def test_a_table_is_refused_in_a_sentence_or_is_what_it_says(tmp_path):
  rng = random.Random(0)
  built = refused = 0
  for number in range(_TABLES):
    content, name, rows = _table(rng)
    path = tmp_path / name
    path.write_bytes(content)
    try:
      task = tasks.build_task(
        'table',
        data_file=str(path),
        client_column='client',
        label_column='label',
        missing_values=rng.choice(['refuse', 'drop', 'fill', 'fill']),
      )
    except (ValueError, sources.DataNotFoundError) as error:
      refused += 1
      assert re.fullmatch('.*[.?]', str(error)), (number, error)
      continue
    built += 1
    assert np.isfinite(task.data.x).all(), number
    parts = np.concatenate([part for split in task.splits for part in split])
    assert np.sort(parts).tolist() == [*range(len(task.data.y))]
    # Whatever is left out, nothing is merged: as many names as texts.
    for names, column in ((task.client_names, 0), (task.class_names, 1)):
      texts = {row[column].lstrip(' ') for row in rows} - {*_MISSING}
      kept = len(rows) == len(task.data.y)
      assert len({*names}) == len(names) <= len(texts), (number, names, texts)
      assert not kept or len(names) == len(texts), (number, names, texts)
      assert all(map(str.isprintable, names)) or '\u200b' in ''.join(names)
  assert built > 50 and refused > 100, (built, refused)
