"""Times as users write them."""

from tests import refusals
from tff_fair.launchers.execution import options
from tff_fair.launchers.options import settings


def test_times():
  for text, expected in (
    ('2h', 7200),
    ('90min', 5400),
    ('1h30m', 5400),
    ('45s', 45),
    ('1.5 hours', 5400),
    ('1d', 86400),
  ):
    assert options.parse_budget(text) == expected, text


def test_what_is_no_time():
  texts = ['', '2', '1e3', 'inf', 'x', '2 fortnights', '-1h', '0s', 'NaT']
  message = '^--budget must be a positive time with its unit, such as 2h or'
  refusals.check(
    options.parse_budget,
    [
      ({'text': t}, settings.SettingsError, message)
      for t in [*texts, '9' * 9 + 'h']
    ],
  )


def test_times_in_words():
  for seconds, words in (
    (59.4, '59 s'),
    (59.6, '1 min'),
    (3599, '1 h 0 min'),
    (5400, '1 h 30 min'),
  ):
    assert options.in_words(seconds) == words


def test_what_was_not_started_is_counted():
  again = '; run the same command again, perhaps with a larger --budget, to go'
  found = options.not_started(600, ['ditto', 'ditto', 'fed_prox'])
  assert found == f'not started within 10 min: 3 runs of 2 methods{again} on'
  found = options.not_started(600, ['ditto'])
  assert found == f'not started within 10 min: 1 run of 1 method{again} on'
