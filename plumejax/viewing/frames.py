"""viewing/frames: a picture of a search as a pure function of its numbers."""

import numpy as np

# Nine colours of cividis, dark blue to yellow: perceptually even, and alike to every colour vision.
_CIVIDIS = (
    (0, 34, 78),
    (18, 53, 112),
    (59, 73, 108),
    (87, 93, 109),
    (112, 113, 115),
    (138, 134, 120),
    (165, 156, 116),
    (210, 193, 89),
    (254, 232, 56),
)
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)
_SOURCE = (213, 94, 0)


def levels(values: np.ndarray, full_scale: float | None = None) -> np.ndarray:
    """float[...], 0 to 1: the brightness of each of `values`, float32[...], from 0 to `full_scale`.

    It is their cube root, since a plume spans orders of magnitude: a thousandth is still seen as a
    tenth. What lies outside gets that of its end. By default the largest value is the brightest.
    """
    top = float(np.max(values, initial=0.0)) if full_scale is None else full_scale
    return np.cbrt(np.clip(values / top, 0.0, 1.0)) if top > 0 else np.zeros(np.shape(values))


def colours(values: np.ndarray, full_scale: float | None = None) -> np.ndarray:
    """uint8[..., 3]: the colour of each of `values`, by its level."""
    return palette(levels(values, full_scale))


def palette(level: np.ndarray) -> np.ndarray:
    """uint8[..., 3]: the colour of each level, float[...] from 0 to 1."""
    stops = np.linspace(0.0, 1.0, len(_CIVIDIS))
    channels = [np.interp(level, stops, channel) for channel in np.transpose(_CIVIDIS)]
    return np.round(np.stack(channels, axis=-1)).astype(np.uint8)


def frame(
    field: np.ndarray,
    sources: np.ndarray,
    goal_radius: float | None,
    position: np.ndarray,
    heading: float | None = None,
    *,
    full_scale: float | None = None,
    free: np.ndarray | None = None,
) -> np.ndarray:
    """uint8[H, W, 3]: one pixel a cell, row 0 at the largest y, so that up is up.

    The agent is a black cell with a white rim, which stands out on every colour; the rim is open
    towards its heading. A source is a red cross, its goal disc a pale ring.

    Args:
      field: float32[H, W], concentration by [y, x].
      sources: float32[S, 2], x and y in cells.
      goal_radius: cells; None draws no ring.
      position: float32[2], of the agent, cells.
      heading: of the agent, degrees counter-clockwise from +x; None if it has none.
      full_scale: concentration of the brightest colour; by default the largest of `field`.
      free: bool[H, W], the cells an agent may stand on; the others are black.
    """
    picture = colours(np.asarray(field), full_scale)
    if free is not None:
        picture[~np.asarray(free)] = _BLACK
    for source in np.asarray(sources):
        if goal_radius is not None:
            ring = np.abs(_distance(picture, source) - goal_radius) < 0.5
            picture[ring] = picture[ring] // 2 + 127
        for offset in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)):
            _dot(picture, source, offset, _SOURCE)
    for dx, dy in np.ndindex(3, 3):
        _dot(picture, position, (dx - 1, dy - 1), _WHITE)
    _dot(picture, position, (0, 0), _BLACK)
    if heading is not None:
        angle = np.deg2rad(heading)
        _dot(picture, position, (round(np.cos(angle)), round(np.sin(angle))), _BLACK)
    return picture[::-1].copy()


def _distance(picture: np.ndarray, point: np.ndarray) -> np.ndarray:
    """float[H, W]: of every cell from `point`."""
    y, x = np.indices(picture.shape[:2])
    return np.hypot(x - point[0], y - point[1])


def _dot(
    picture: np.ndarray, point: np.ndarray, offset: tuple[int, int], colour: tuple[int, int, int]
) -> None:
    """Colour the cell that is `offset` from that of `point`, if the picture has it."""
    x, y = (round(float(p)) + n for p, n in zip(point, offset, strict=True))
    height, width, _ = picture.shape
    if 0 <= x < width and 0 <= y < height:
        picture[y, x] = colour
