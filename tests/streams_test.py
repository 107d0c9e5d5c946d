import itertools

from tff_fair import streams


def _draw(*arguments):
  return tuple(streams.generator(*arguments).integers(0, 2**60, 2))


def test_a_stream_begins_anew_each_time():
  assert _draw(3, streams.BALANCE) == _draw(3, streams.BALANCE)


def test_streams_and_seeds_differ():
  names = (
    streams.CLIENT_SPLIT,
    streams.SERVER_SPLIT,
    streams.BALANCE,
    streams.DATA_FRACTION,
    streams.EHR_SPLIT,
    streams.EHR_RECORDS,
    streams.SHIFT_DIRECTIONS,
    streams.SHIFT_CONTROL,
  )
  draws = {_draw(*key) for key in itertools.product((0, 1), names)}
  draws |= {_draw(0, streams.CLIENT_SPLIT, client) for client in range(3)}
  draws |= {_draw(0), _draw(1)}
  assert len(draws) == 16 + 3 + 2
