import pytest

from tff_fair.launchers.runs import data_description


@pytest.fixture(autouse=True)
def _no_data_dir(monkeypatch):
  monkeypatch.delenv('TFF_FAIR_DATA_DIR', raising=False)


def test_synthetic_records_are_called_so(tmp_path):
  records = {'task': 'ehr', 'data_dir': str(tmp_path)}
  for settings, expected in (
    ({'task': 'digits'}, 'digits'),
    ({'task': 'no such task'}, 'no such task'),
    (records, 'synthetic records (ehr_scale 0.02)'),
    ({**records, 'ehr_scale': 0.01}, 'synthetic records (ehr_scale 0.01)'),
    # As in a flags file.
    ({**records, 'ehr_scale': '0.5'}, 'synthetic records (ehr_scale 0.5)'),
  ):
    assert data_description.describe(settings) == expected
  (tmp_path / 'patients.csv').touch()
  assert data_description.describe(records) == 'ehr'
  (tmp_path / 'events.csv').touch()
  assert data_description.describe(records) == 'ehr'
