"""viewing: the window, drawn with SDL's dummy driver."""

import sys
import time

import numpy as np
import pytest

from plumejax.base.errors import RenderingError
from plumejax.viewing.window import Window

pygame = pytest.importorskip("pygame")

FRAME = np.zeros((12, 16, 3), np.uint8)
FRAME[0, 0] = (255, 0, 0)  # the upper left


@pytest.fixture
def window():
    window = Window("test", fps=1000)
    yield window
    window.close()


def test_a_frame_is_scaled_up_and_upright(window):
    window.show(FRAME)
    screen = pygame.display.get_surface()
    assert screen.get_size() == (640, 480)
    assert screen.get_at((39, 39))[:3] == (255, 0, 0)
    assert screen.get_at((41, 0))[:3] == (0, 0, 0)
    assert screen.get_at((0, 479))[:3] == (0, 0, 0)


def test_another_size_is_another_window(window):
    window.show(FRAME)
    window.show(np.zeros((2000, 700, 3), np.uint8))
    assert pygame.display.get_surface().get_size() == (700, 2000)


def test_frames_keep_their_pace():
    window = Window("test", fps=50)
    window.show(FRAME)
    began = time.perf_counter()
    for _ in range(5):
        window.show(FRAME)
    assert time.perf_counter() - began > 0.08
    window.close()


def test_close_is_clean_and_may_be_repeated(window):
    window.show(FRAME)
    window.close()
    window.close()
    assert not pygame.display.get_init()
    window.show(FRAME)  # opens again
    assert pygame.display.get_init()


def test_a_window_that_the_user_closes_stays_closed(window):
    window.show(FRAME)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.show(FRAME)
    window.show(FRAME)
    assert not pygame.display.get_init()


def test_no_display_is_one_clear_error(window, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "nonsense")
    with pytest.raises(RenderingError, match=r"SDL_VIDEODRIVER=dummy.*rgb_array"):
        window.show(FRAME)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    window.show(FRAME)


def test_missing_pygame_is_one_clear_error(window, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(RenderingError, match=r"plumejax\[view\]"):
        window.show(FRAME)
