"""viewing/frames: a picture of a search, as a pure function of its state."""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base.errors import RenderingError, require
from plumejax.viewing.scenery import Canvas, Scenery, canvas, scenery, search_of, turns

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
BLACK, WHITE, WALL = (0, 0, 0), (255, 255, 255), (222, 219, 211)
SOURCE, WIND = (213, 94, 0), (86, 180, 233)
"""Of Okabe and Ito, and told apart from every colour of a plume."""

BRIGHT = 0.5
"""Per cent of a field that are brighter than the brightest colour."""

LONGEST = 4096
"""Pixels of a picture's longer side that may be asked for."""

TRAIL = 64
"""Places behind an agent that films and Gymnasium's pictures show."""

_THINNEST = 48
"""Pixels that a picture is high, at least."""

_BETWEEN = 16
"""Dots of a trail from one place to the next."""


@dataclass(frozen=True)
class Camera:
    """How pictures of a task are taken; static, compared by value.

    Attributes:
      env: the task, a search.
      size: width and height of the canvas, whose pixels are those of the field.
      origin, spacing: the other numbers of the `Canvas`.
      scale: pixels of the picture for one of the canvas, along x and along y.
      decades: None: brightness is the cube root of the concentration; else its logarithm, over so
        many decades below the brightest.
      bar: lengths of the plume that the scale bar stands for.
    """

    env: Any
    size: tuple[int, int]
    origin: tuple[float, ...]
    spacing: tuple[float, ...]
    scale: tuple[int, int]
    decades: float | None
    bar: float

    @property
    def canvas(self) -> Canvas:
        """Where the field is sampled."""
        origin, spacing = (np.asarray(x, np.float32) for x in (self.origin, self.spacing))
        return Canvas(self.size, origin, spacing)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a picture: [H, W, 3]."""
        return self.size[1] * self.scale[1], self.size[0] * self.scale[0], 3


def camera(env: Any, params: Any, longest: int = 480, decades: float | None = None) -> Camera:
    """The `Camera` of a search with these numbers.

    Args:
      env, params: the task.
      longest: pixels of a picture's longer side, at most, where the canvas itself has no more.
      decades: of a logarithmic scale; by default it is the cube root.

    Raises:
      ValidationError: `longest` or `decades` is out of range.
      RenderingError: the task is no search, or its arena has no size.
    """
    whole = isinstance(longest, int) and not isinstance(longest, bool)
    require(whole and 0 < longest <= LONGEST, "longest", longest, f"an int from 1 to {LONGEST}")
    number = decades is None or (isinstance(decades, int | float) and decades > 0)
    require(number, "decades", decades, "None or > 0")
    if not hasattr(search_of(env), "arena"):
        raise RenderingError(f"{env.name} is no search, and only searches have frames")
    where = canvas(search_of(env).arena, params)
    across = max(1, longest // max(where.size))
    up = max(across, -(-_THINNEST // where.size[1]))
    origin, spacing = (tuple(np.asarray(x, float).tolist()) for x in (where.origin, where.spacing))
    bar = _round_number(0.25 * where.size[0] * spacing[0])
    return Camera(env, where.size, origin, spacing, (across, up), decades, bar)


@partial(jax.jit, static_argnames="camera")
def frame(camera: Camera, state: Any, params: Any, trail: Any = None, top: Any = None) -> jax.Array:
    """uint8[H, W, 3]: a search as it stands, row 0 at the largest y, so that up is up; pure.

    The agent is a white arrowhead along its heading, or a disc where that says nothing; its
    antennae are dots on stalks. A source is a red star, its goal disc a white ring, what no agent
    can enter is pale. Below are a scale bar and an arrow of the wind at the agent, if there is one.

    Args:
      camera: of the task.
      state, params: of an episode.
      trail: float32[T, 2] or [T, d], where the agent has been, lengths of the plume, the latest
        last, fainter the longer ago; NaN where there is none.
      top: float32[], concentration of the brightest colour; by default the `brightest` of this
        picture's field.
    """
    params = camera.env.episode_params(state, params)
    seen = scenery(camera.env, state, params, camera.canvas)
    if top is None:
        top = brightest(seen.field, getattr(params.sensor, "saturation", None))
    table = jnp.asarray(colour_table(), jnp.float32)
    level = levels(seen.field, top, camera.decades)
    picture = table[jnp.rint(level * 255).astype(jnp.int32)]
    picture = _covered(picture, (~seen.free).astype(jnp.float32), WALL)
    across, up = camera.scale
    picture = jnp.repeat(jnp.repeat(picture[::-1], up, axis=0), across, axis=1)
    picture = _with_places(camera, picture, seen, params, trail)
    picture = _with_wind(picture, seen.wind)
    picture = _with_bar(camera, picture)
    return jnp.rint(picture).astype(jnp.uint8)


def brightest(field: Any, saturation: Any = None) -> jax.Array:
    """float32[]: the concentration that the brightest colour stands for; pure.

    It is the saturation of the sensor, where that is finite, else what all but `BRIGHT` per cent of
    `field`, float32[H, W], stay below: at a source it may be so high that all else would be dark.
    """
    field = jnp.asarray(field, jnp.float32)
    most = jnp.percentile(field, jnp.float32(100 - BRIGHT))
    most = jnp.where(most > 0, most, jnp.max(field))
    if saturation is None:
        return most
    full = jnp.asarray(saturation, jnp.float32)
    return jnp.where(jnp.isfinite(full), full, most)


def levels(values: Any, top: Any, decades: float | None = None) -> jax.Array:
    """float32[...], 0 to 1: the brightness of each of `values`, float32[...]; pure.

    It is the cube root of their share of `top`, since a plume spans orders of magnitude: a
    thousandth is still seen as a tenth. With `decades` it is the logarithm, 0 so many decades below
    `top`. What lies outside gets that of its end.
    """
    values, top = jnp.asarray(values), jnp.asarray(top, jnp.float32)
    share = jnp.where(top > 0, values / jnp.where(top > 0, top, 1), jnp.zeros_like(values))
    share = jnp.clip(share, 0, 1).astype(jnp.float32)
    if decades is None:
        return jnp.cbrt(share)
    smallest = jnp.float32(10.0**-decades)
    return 1 + jnp.log10(jnp.maximum(share, smallest)) / jnp.float32(decades)


def palette(level: Any) -> np.ndarray:
    """uint8[..., 3]: the colour of each level, float[...] from 0 to 1."""
    stops = np.linspace(0.0, 1.0, len(_CIVIDIS))
    channels = [np.interp(level, stops, channel) for channel in np.transpose(_CIVIDIS)]
    return np.round(np.stack(channels, axis=-1)).astype(np.uint8)


def colour_table() -> np.ndarray:
    """uint8[256, 3]: the colour of each level that a picture has."""
    return palette(np.linspace(0.0, 1.0, 256))


def contact_sheet(frames: Any, columns: int | None = None) -> jax.Array:
    """uint8[H, W, 3]: many pictures uint8[n, h, w, 3] of one size as one, row by row, with white
    between them; pure.

    Args:
      frames: the pictures.
      columns: in a row; by default as makes the sheet about square.

    Raises `ValidationError` for another shape.
    """
    frames = jnp.asarray(frames)
    good = frames.ndim == 4 and len(frames) > 0 and frames.shape[-1] == 3
    require(good, "frames", frames.shape, "[n, h, w, 3], n > 0")
    count, height, width, _ = frames.shape
    columns = columns or max(1, round(float(np.sqrt(count * height / width))))
    columns = min(columns, count)
    rows, gap = -(-count // columns), max(2, width // 60)
    filled = jnp.pad(
        frames,
        ((0, rows * columns - count), (0, gap), (0, gap), (0, 0)),
        constant_values=np.uint8(255),
    )
    grid = filled.reshape(rows, columns, height + gap, width + gap, 3).swapaxes(1, 2)
    sheet = grid.reshape(rows * (height + gap), columns * (width + gap), 3)
    return sheet[:-gap, :-gap]


# ---- what is drawn: distances in pixels of the picture, y downwards ----


def _unit(shape: tuple[int, ...]) -> float:
    """Half the width of the thickest line, pixels."""
    return float(np.clip(max(shape[:2]) / 200, 1.0, 3.0))


def _grid(shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """x and y of every pixel's middle, float32[W] and float32[H, 1]."""
    height, width = shape[:2]
    x, y = (jnp.arange(n, dtype=jnp.float32) for n in (width, height))
    return x[None], y[:, None]


def _paint(
    picture: jax.Array, distance: jax.Array, colour: tuple[int, int, int], share: Any = 1.0
) -> jax.Array:
    """The picture with what is closer than 0, smooth along its rim, in a colour that covers a
    `share`."""
    return _covered(
        picture, jnp.clip(0.5 - distance, 0, 1) * jnp.asarray(share, jnp.float32), colour
    )


def _covered(picture: jax.Array, cover: jax.Array, colour: tuple[int, int, int]) -> jax.Array:
    """The picture, a share float32[H, W] of which is covered with a colour."""
    return picture + cover[..., None] * (jnp.asarray(colour, jnp.float32)[None, None] - picture)


def _to_disc(grid: Any, centre: jax.Array, radius: Any) -> jax.Array:
    x, y = grid
    return jnp.hypot(x - centre[0], y - centre[1]) - radius


def _to_stroke(grid: Any, start: jax.Array, end: jax.Array, half: Any) -> jax.Array:
    """From a line of width 2 `half` with round ends."""
    x, y = grid
    way = end - start
    length = jnp.maximum(jnp.sum(jnp.square(way)), jnp.float32(1e-6))
    along = ((x - start[0]) * way[0] + (y - start[1]) * way[1]) / length
    along = jnp.clip(along, 0, 1)
    return jnp.hypot(x - start[0] - along * way[0], y - start[1] - along * way[1]) - half


def _to_triangle(grid: Any, corners: jax.Array) -> jax.Array:
    """From a triangle float32[3, 2]: the farthest of its three sides, which is right but outside
    its corners, where it is too near."""
    x, y = grid
    middle = jnp.mean(corners, axis=0)

    def beyond(a: jax.Array, b: jax.Array) -> jax.Array:
        way = b - a
        normal = jnp.stack([way[1], -way[0]]) / jnp.maximum(jnp.hypot(*way), jnp.float32(1e-6))
        normal = jnp.where(jnp.sum(normal * (middle - a)) > 0, -normal, normal)
        return (x - a[0]) * normal[0] + (y - a[1]) * normal[1]

    sides = [beyond(corners[i], corners[(i + 1) % 3]) for i in range(3)]
    return jnp.maximum(jnp.maximum(sides[0], sides[1]), sides[2])


def _arrowhead(at: jax.Array, way: jax.Array, size: Any) -> jax.Array:
    """float32[3, 2]: corners of an arrowhead around `at` along the unit vector `way`."""
    left = jnp.stack([way[1], -way[0]])
    return at[None] + size * jnp.stack([1.8 * way, 0.8 * left - way, -0.8 * left - way])


def _with_places(
    camera: Camera, picture: jax.Array, seen: Scenery, params: Any, trail: Any
) -> jax.Array:
    """The picture with goals, sources, trail, antennae and agents."""
    u, grid = _unit(picture.shape), _grid(picture.shape)
    at = partial(_pixels, camera)
    radius = getattr(params.ending, "radius", None)
    for source in at(seen.sources):
        if radius is not None:
            cells = jnp.asarray(radius, jnp.float32) / jnp.float32(camera.spacing[0])
            away = jnp.abs(_to_disc(grid, source, cells * camera.scale[0])) - 0.5 * u
            picture = _paint(picture, away, WHITE, 0.7)
    if trail is not None:
        picture = _with_trail(camera, picture, jnp.asarray(trail, jnp.float32))
    for source in at(seen.sources):
        for thicker, colour in ((u, WHITE), (0.0, SOURCE)):
            for degrees in (0, 60, 120):
                angle = np.deg2rad(degrees)
                arm = 3.2 * u * jnp.asarray([np.cos(angle), np.sin(angle)], jnp.float32)
                stroke = _to_stroke(grid, source - arm, source + arm, 0.7 * u + thicker)
                picture = _paint(picture, stroke, colour)
    agents = at(seen.agents)
    for i, probe in enumerate(at(seen.probes)):
        own = agents[i // max(1, len(seen.probes) // len(agents))]
        apart = jnp.hypot(*(probe - own)) > 1.0
        for thicker, colour in ((0.7 * u, BLACK), (0.0, WHITE)):
            stalk = _to_stroke(grid, own, probe, 0.3 * u + thicker)
            tip = _to_disc(grid, probe, 1.1 * u + thicker)
            picture = _paint(picture, jnp.minimum(stalk, tip), colour, apart)
    for place, heading in zip(agents, seen.headings, strict=True):
        if turns(camera.env):
            angle = jnp.deg2rad(heading)
            way = jnp.stack([jnp.cos(angle), -jnp.sin(angle)])
            shape = _to_triangle(grid, _arrowhead(place, way, 3.2 * u))
        else:
            shape = _to_disc(grid, place, 2.8 * u)
        picture = _paint(_paint(picture, shape - u, BLACK), shape, WHITE)
    return picture


def _with_trail(camera: Camera, picture: jax.Array, trail: jax.Array) -> jax.Array:
    """The picture with dots along float32[T, d]."""
    trail = jnp.pad(trail[:, :2], ((0, 0), (0, max(0, 2 - trail.shape[1]))))
    where = camera.canvas
    ends = _pixels(camera, (trail - where.origin[None]) / where.spacing[None])
    share = jnp.arange(_BETWEEN, dtype=jnp.float32) / _BETWEEN
    dots = ends[:-1, None] + share[None, :, None] * (ends[1:] - ends[:-1])[:, None]
    dots = jnp.concatenate([dots.reshape(-1, 2), ends[-1:]])
    age = jnp.linspace(0.25, 0.9, len(dots), dtype=jnp.float32)
    # Off the picture, where there is none.
    dots = jnp.where(jnp.isnan(dots), -1e6, dots)
    reach = int(np.ceil(0.6 * _unit(picture.shape)))
    brush = [(dx, dy) for dx in range(-reach, reach + 1) for dy in range(-reach, reach + 1)]
    brush = [each for each in brush if np.hypot(*each) <= reach]
    places = jnp.rint(dots)[:, None] + jnp.asarray(brush, jnp.float32)[None]
    x, y = (places[..., i].astype(jnp.int32) for i in (0, 1))
    # A negative number would count from the other end.
    inside = (x >= 0) & (y >= 0)
    x, y = (jnp.where(inside, n, jnp.int32(2**30)) for n in (x, y))
    share = jnp.zeros(picture.shape[:2], jnp.float32)
    share = share.at[y, x].max(jnp.broadcast_to(age[:, None], x.shape), mode="drop")
    return _covered(picture, share, WHITE)


def _with_wind(picture: jax.Array, wind: jax.Array) -> jax.Array:
    """The picture with an arrow of the wind in its lower left corner, if there is any."""
    u, grid = _unit(picture.shape), _grid(picture.shape)
    speed = jnp.hypot(wind[0], wind[1])
    way = jnp.stack([wind[0], -wind[1]]) / jnp.maximum(speed, jnp.float32(1e-12))
    middle = jnp.asarray([11 * u, picture.shape[0] - 1 - 11 * u], jnp.float32)
    tip = middle + 4 * u * way
    for thicker, colour in ((0.8 * u, BLACK), (0.0, WIND)):
        shaft = _to_stroke(grid, middle - 7 * u * way, tip, 0.7 * u + thicker)
        head = _to_triangle(grid, _arrowhead(tip, way, 2.6 * u)) - thicker
        picture = _paint(picture, jnp.minimum(shaft, head), colour, speed > 0)
    return picture


def _with_bar(camera: Camera, picture: jax.Array) -> jax.Array:
    """The picture with a scale bar, and what it stands for, in its lower right corner."""
    height, width, _ = camera.shape
    u = _unit(camera.shape)
    long = camera.bar / camera.spacing[0] * camera.scale[0]
    y, right = height - 1 - 4 * u, width - 1 - 5 * u
    start, end = (jnp.asarray([x, y], jnp.float32) for x in (right - long, right))
    stroke = _to_stroke(_grid(picture.shape), start, end, 0.7 * u)
    picture = _paint(_paint(picture, stroke - 0.8 * u, BLACK), stroke, WHITE)
    length = getattr(search_of(camera.env).plume, "length", None)
    unit = length or ("cells" if hasattr(search_of(camera.env).arena, "grid_size") else "")
    mask = text_mask(f"{camera.bar:g} {unit}".strip(), max(9, round(7 * u)))
    tall, wide = mask.shape
    top, left = round(y - 3 * u) - tall, round(right - (long + wide) / 2)
    left = min(max(left, 1), width - wide - 1)
    if top < 1 or left < 1:
        return picture  # there is no room
    dark = np.max([np.roll(mask, way, (0, 1)) for way in np.ndindex(3, 3)], axis=0)
    for cover, colour, shift in ((dark, BLACK, -1), (mask, WHITE, 0)):
        window = (slice(top + shift, top + shift + tall), slice(left + shift, left + shift + wide))
        part = picture[window]
        picture = picture.at[window].set(_covered(part, jnp.asarray(cover, jnp.float32), colour))
    return picture


def _pixels(camera: Camera, places: jax.Array) -> jax.Array:
    """float32[n, 2]: pixels of the canvas as those of the picture."""
    scale = jnp.asarray(camera.scale, jnp.float32)[None]
    spread = (places + 0.5) * scale - 0.5
    return jnp.stack([spread[:, 0], camera.shape[0] - 1 - spread[:, 1]], axis=-1)


def _round_number(most: float) -> float:
    """The largest of 1, 2, 5, 10, ... that is not above `most`."""
    power = 10.0 ** np.floor(np.log10(most))
    return float(max(n for n in (1.0, 2.0, 5.0) if n * power <= most * 1.0001) * power)


@cache
def text_mask(text: str, size: int) -> np.ndarray:
    """float32[h, w], 0 to 1: how a line of text covers the pixels around it, two more each side."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size)
    left, top, right, bottom = font.getbbox(text)
    image = Image.new("L", (int(right - left) + 4, int(bottom - top) + 4))
    ImageDraw.Draw(image).text((2 - left, 2 - top), text, fill=255, font=font)
    return np.asarray(image, np.float32) / 255
