import os
import signal

import pytest

from launchers import stopping


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_said(number, capfd):
  before = signal.getsignal(number)
  with stopping.StopWish() as wish:
    assert not wish.is_made
    os.kill(os.getpid(), number)
    assert wish.is_made
  assert 'stopping after this round' in capfd.readouterr().err
  assert signal.getsignal(number) is before


def test_the_second_signal_acts():
  with stopping.StopWish(), pytest.raises(KeyboardInterrupt):
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)


def test_handlers_are_restored_without_a_signal():
  before = signal.getsignal(signal.SIGTERM)
  with stopping.StopWish():
    assert signal.getsignal(signal.SIGTERM) is not before
  assert signal.getsignal(signal.SIGTERM) is before
