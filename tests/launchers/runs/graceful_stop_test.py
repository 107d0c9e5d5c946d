import os
import signal

import pytest

from tff_fair.launchers import interrupts


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_recorded_and_the_second_raises(number, capfd):
  before = signal.getsignal(number)
  with interrupts.GracefulStop() as stop:
    assert not stop.is_requested
    os.kill(os.getpid(), number)
    assert stop.is_requested
    assert 'stopping after this round' in capfd.readouterr().err
    try:
      with stop.postponed():  # The rows of a round are being written.
        os.kill(os.getpid(), number)
    except KeyboardInterrupt:
      pytest.fail('It was not postponed.')
    with pytest.raises(KeyboardInterrupt):
      os.kill(os.getpid(), number)
  assert signal.getsignal(number) is before
