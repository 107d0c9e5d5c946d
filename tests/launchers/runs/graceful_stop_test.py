import os
import signal

import pytest

from tff_fair.launchers.runs import graceful_stop


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_recorded_and_announced(number, capfd):
  before = signal.getsignal(number)
  with graceful_stop.GracefulStop() as stop:
    assert not stop.is_requested
    os.kill(os.getpid(), number)
    assert stop.is_requested
    assert signal.getsignal(number) is before
  assert 'stopping after this round' in capfd.readouterr().err


def test_the_second_signal_acts():
  with graceful_stop.GracefulStop(), pytest.raises(KeyboardInterrupt):
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)


def test_handlers_are_restored_without_a_signal():
  before = signal.getsignal(signal.SIGTERM)
  with graceful_stop.GracefulStop():
    assert signal.getsignal(signal.SIGTERM) is not before
  assert signal.getsignal(signal.SIGTERM) is before
