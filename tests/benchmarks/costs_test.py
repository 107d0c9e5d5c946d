"""What a round costs: which points are measured, and what is made of them."""

from absl import flags
import pandas as pd
import pytest

from benchmarks import costs
from benchmarks import own_process


def test_points_slopes_and_picture(tmp_path, monkeypatch):
  sizes = []

  def measure(module, argument, what):
    *size, rounds = argument
    sizes.append((*size, rounds))
    clients, examples, weights = size
    # Linear in the clients, a square root of the examples, and constant.
    return [clients * examples**0.5, 7.0, weights - 15]

  monkeypatch.setattr(own_process, 'run', measure)
  flag_values = flags.FlagValues()
  costs.define_flags(flag_values)
  arguments = ['costs', '--rounds=1', f'--output_dir={tmp_path}']
  costs.main(flag_values(arguments), flag_values)
  # The point that the three axes share is measured once.
  assert len(sizes) == len(set(sizes)) == 12
  assert {rounds for *_, rounds in sizes} == {3}
  found = pd.read_csv(tmp_path / 'costs.csv').set_index(['axis', 'value'])
  slopes = found['seconds_slope']
  assert slopes['clients'].iloc[0] != slopes['clients'].iloc[0]  # NaN.
  assert slopes['clients', 100] == pytest.approx(1)
  assert slopes['examples', 10_000] == pytest.approx(0.5)
  assert slopes['weights', 100_000 - 15] == pytest.approx(0)
  assert found['memory_mib_slope'].dropna().eq(0).all()
  assert (tmp_path / 'costs.png').stat().st_size > 1000
