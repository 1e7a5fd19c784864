"""tests/cli/conftest: what the tests of the command share."""

import signal

import pytest


@pytest.fixture
def interruptible():
    """Ctrl-C reaches what a test starts, even where the tests run in the background.

    A shell lets its background jobs ignore it, and they hand that on.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
