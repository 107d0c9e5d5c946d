"""Small files of health records."""

PATIENTS = 'patient_id,state,sex,postal_code'
EVENTS = 'patient_id,age,code,value'


def write_rows(folder, patients, events):
  """Writes both files from their rows; returns their paths."""
  paths = folder / 'patients.csv', folder / 'events.csv'
  paths[0].write_text('\n'.join([PATIENTS, *patients]) + '\n')
  paths[1].write_text('\n'.join([EVENTS, *events]) + '\n')
  return paths


def write(folder, states, extra_events=()):
  """30 patients a state with two events each, every third one positive."""
  patients, events = [], [*extra_events]
  for state in states:
    for i in range(30):
      name = f'{state}{i:03d}'
      patients.append(f'{name},{state},F,{i}')
      events += [f'{name},{50 + i},X,{i}', f'{name},{60 + i},Y,']
      if i % 3 == 0:
        events.append(f'{name},{70 + i},C25.9,')
  return write_rows(folder, patients, events)
