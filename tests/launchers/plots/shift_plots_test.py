"""Tests of the shift's picture: the data drawn is the data in the file."""

from matplotlib import image
import numpy as np
import pandas as pd

from tff_fair.launchers.plots import shift_plots


def _write(folder, **changes):
  columns = {
    'client_id': [0, 1, 2],
    'kl': [2.0, 1.0, 3.0],
    'kl_expansion': [1.8, 0.9, 2.5],
    'control_kl': [0.01, 0.02, 0.03],
    **changes,
  }
  path = folder / 'clients.csv'
  pd.DataFrame(columns).to_csv(path, index=False)
  return path


def _values(figure):
  return [line.get_ydata().tolist() for line in figure.axes[0].lines]


def test_each_client_has_its_three_values_on_a_logarithmic_axis(tmp_path):
  path = tmp_path / 'kl.png'
  figure = shift_plots.divergences(_write(tmp_path), path)
  (axes,) = figure.axes
  assert axes.get_yscale() == 'log'
  assert _values(figure) == [
    [2.0, 1.0, 3.0],
    [1.8, 0.9, 2.5],
    [0.01, 0.02, 0.03],
  ]
  for line in axes.lines:
    assert line.get_xdata().tolist() == [0, 1, 2]
  labels = [text.get_text().split()[0] for text in figure.legends[0].texts]
  assert labels == ['exact', 'approximation', 'control:']
  assert len({line.get_color() for line in axes.lines}) == 3
  assert axes.get_xlabel() == 'Client'
  assert axes.get_ylabel() == 'KL divergence (nats)'
  assert path.read_bytes().startswith(b'\x89PNG')
  assert image.imread(path).shape[:2] == (576, 960)


def test_what_a_logarithm_cannot_show_is_left_out(tmp_path):
  file = _write(
    tmp_path, kl=[2.0, np.nan, 3.0], kl_expansion=[-0.4, np.nan, 2.5]
  )
  figure = shift_plots.divergences(file, tmp_path / 'kl.png')
  exact, approximate, _ = _values(figure)
  np.testing.assert_array_equal(exact, [2.0, np.nan, 3.0])
  np.testing.assert_array_equal(approximate, [np.nan, np.nan, 2.5])
