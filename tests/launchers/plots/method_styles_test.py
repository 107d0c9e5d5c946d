"""The colours and markers of methods: unique, and for every eye."""

import itertools

import numpy as np

from tff_fair.launchers.options import methods
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.tables import definitions

# Machado, Oliveira and Fernandes, 2009, severity 1; in linear RGB.
_EYES = {
  'normal': np.eye(3),
  'protanopia': np.array(
    [
      [0.152286, 1.052583, -0.204868],
      [0.114503, 0.786281, 0.099216],
      [-0.003882, -0.048116, 1.051998],
    ]
  ),
  'deuteranopia': np.array(
    [
      [0.367322, 0.860646, -0.227968],
      [0.280085, 0.672501, 0.047413],
      [-0.011820, 0.042940, 0.968881],
    ]
  ),
  'tritanopia': np.array(
    [
      [1.255528, -0.076749, -0.178779],
      [-0.078411, 0.930809, 0.147602],
      [0.004733, 0.691367, 0.303900],
    ]
  ),
}
# In OKLab; about 0.02 is just noticeable.
_APART = 0.09


def _linear(color):
  """`#rrggbb` as linear RGB."""
  values = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
  low = values <= 0.04045
  return np.where(low, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def _oklab(linear):
  """Ottosson, 2020."""
  cones = np.array(
    [
      [0.4122214708, 0.5363325363, 0.0514459929],
      [0.2119034982, 0.6806995451, 0.1073969566],
      [0.0883024619, 0.2817188376, 0.6299787005],
    ]
  )
  opponents = np.array(
    [
      [0.2104542553, 0.7936177850, -0.0040720468],
      [1.9779984951, -2.4285922050, 0.4505937099],
      [0.0259040371, 0.7827717662, -0.8086757660],
    ]
  )
  return opponents @ np.cbrt(cones @ np.clip(linear, 0, 1))


def _distance(first, second):
  """The least distance of two colours among all kinds of eyes."""
  return min(
    np.linalg.norm(_oklab(eye @ _linear(first)) - _oklab(eye @ _linear(second)))
    for eye in _EYES.values()
  )


def _contrast(first, second):
  """WCAG 2."""
  low, high = sorted(
    _linear(color) @ [0.2126, 0.7152, 0.0722] for color in (first, second)
  )
  return (high + 0.05) / (low + 0.05)


def test_every_provided_method_has_its_own_look():
  assert set(method_styles.PROVIDED) == set(methods.METHODS)
  looks = method_styles.PROVIDED.values()
  assert len(set(looks)) == len(looks)
  own = [method_styles.PROVIDED[name] for name in methods.PAPERS]
  own += [method_styles.PROVIDED[n] for n in ('fed_avg', 'standalone')]
  assert len({color for color, _ in own}) == len(own)
  assert len({marker for _, marker in own}) == len(own)


def test_colors_are_apart_for_all_eyes_and_readable_on_all_pages():
  for pair in itertools.combinations(method_styles.COLORS, 2):
    assert _distance(*pair) >= _APART, pair
  for color in method_styles.COLORS:
    for page in ('#ffffff', '#15171a'):
      assert _contrast(color, page) >= 3, color


def test_the_simulation_finds_colors_that_look_alike():
  assert _distance('#d80000', '#7a6a00') < _APART  # Red and olive.
  assert _distance('#000000', '#ffffff') > 0.9


def test_methods_of_a_table_differ_in_marker_and_in_color_where_it_is_small():
  for name, table in definitions.TABLES.items():
    compared = sorted({flags['algorithm'] for flags in table.methods.values()})
    for pair in itertools.combinations(compared, 2):
      (a, first), (b, second) = (method_styles.PROVIDED[m] for m in pair)
      if len(compared) <= len(method_styles.MARKERS):
        assert first != second, (name, pair)
      if len(compared) <= len(method_styles.COLORS):
        assert _distance(a, b) >= _APART, (name, pair)


def test_a_method_looks_the_same_alone_and_in_company():
  (alone,) = method_styles.of_runs(['ditto'])
  for company in (
    ['fed_avg', 'ditto'],
    [*methods.METHODS],
    ['x', 'y', 'ditto'],
  ):
    found = method_styles.of_runs(company)
    assert found[company.index('ditto')] == alone
  assert (alone.linestyle, alone.hollow) == ('-', False)


def test_runs_of_one_method_share_color_and_marker_only():
  styles = method_styles.of_runs(['cffl', 'fed_avg', *['cffl'] * 7])
  of_cffl = [styles[0], *styles[2:]]
  assert {s[:2] for s in of_cffl} == {method_styles.PROVIDED['cffl']}
  assert len(set(of_cffl)) == 8
  assert (of_cffl[1].linestyle, of_cffl[1].hollow) == ('--', True)


def test_plug_ins_have_a_look_of_their_own():
  names = ['tilted', 'FedAvg2', '東京', '', '\udc80']
  first = method_styles.of_runs(names)
  assert method_styles.of_runs(names[::-1])[::-1] == first
  taken = set(method_styles.PROVIDED.values())
  for style in first:
    assert style[:2] not in taken
    assert style.color in method_styles.COLORS
    assert style.marker in method_styles.MARKERS
