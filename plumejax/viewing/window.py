"""viewing/window: a window on the screen that shows frames; needs the extra `view`."""

import os
from typing import Any

import numpy as np

from plumejax.base.errors import RenderingError

_SIDE = 640
"""Pixels that the longer side of a picture is scaled up to, at most."""


class Window:
    """A pygame window, opened by the first frame and paced at `fps` frames a second.

    A user who closes the window is left alone: later frames are not shown.
    """

    def __init__(self, title: str, fps: float) -> None:
        self._title, self._fps = title, fps
        self._pygame: Any = None
        self._clock: Any = None
        self._dismissed = False

    def show(self, frame: np.ndarray) -> None:
        """Show uint8[H, W, 3] and wait for its turn.

        Raises `RenderingError` if pygame is missing or the screen cannot be used.
        """
        if self._dismissed:
            return
        height, width, _ = frame.shape
        scale = max(1, _SIDE // max(height, width))
        size = (width * scale, height * scale)
        pygame = self._open()
        try:
            screen = pygame.display.get_surface()
            if screen is None or screen.get_size() != size:
                screen = pygame.display.set_mode(size)
                pygame.display.set_caption(self._title)
            surface = pygame.surfarray.make_surface(frame.swapaxes(0, 1))
            screen.blit(pygame.transform.scale(surface, size), (0, 0))
            pygame.display.flip()
            closed_by_user = any(e.type == pygame.QUIT for e in pygame.event.get())
        except pygame.error as error:
            self.close()
            raise RenderingError(_no_screen(error)) from error
        self._clock.tick(self._fps)
        if closed_by_user:
            self.close()
            self._dismissed = True

    def close(self) -> None:
        """Take the window away; safe to call again."""
        if self._pygame is not None:
            self._pygame.display.quit()
            self._pygame = None

    def _open(self) -> Any:
        if self._pygame is None:
            pygame = _import_pygame()
            try:
                pygame.display.init()
            except pygame.error as error:
                raise RenderingError(_no_screen(error)) from error
            self._pygame, self._clock = pygame, pygame.time.Clock()
        return self._pygame


def _import_pygame() -> Any:
    # pygame greets on standard output unless it is told not to.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError as error:
        raise RenderingError(
            "a window needs pygame, which is not installed: pip install 'plumejax[view]', or use"
            " render_mode='rgb_array'"
        ) from error
    return pygame


def _no_screen(error: Exception) -> str:
    return (
        f"no window can be opened ({error}): run where there is a display, set"
        " SDL_VIDEODRIVER=dummy to draw unseen, or use render_mode='rgb_array'"
    )
