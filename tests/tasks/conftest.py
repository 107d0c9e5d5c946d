"""What tests of data sets share."""

import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
  """An empty home in an empty folder, and no way to download."""
  import tensorflow as tf

  from tff_fair.tasks import sources

  def get_file(*_, **__):
    raise OSError('no such host')

  monkeypatch.delenv(sources.DATA_DIR_VARIABLE, raising=False)
  monkeypatch.setenv('HOME', str(tmp_path / 'home'))
  monkeypatch.setattr(tf.keras.utils, 'get_file', get_file)
  return tmp_path / 'home'
