"""plumes/diffusion: the steady field of odour that diffuses among walls, and decays."""

import numpy as np

from plumejax.base.errors import require_positive


def steady_field(free: np.ndarray, source: tuple[int, int], reach: float) -> np.ndarray:
    """float64[height, width], indexed [y, x]: concentration of a source in one cell, 1 there.

    `sum over free neighbours of (c_neighbour - c) = c / reach^2` in each free cell but the source:
    diffusion D with a decay k, `reach = sqrt(D / k)`, through whose walls nothing flows; walls
    and cells without a way to the source have 0. In a corridor `c = exp(-x / reach)`, nearly; in
    the open it is a Bessel function, K0(r / reach).

    Solved to rounding by conjugate gradients, on the host.

    Args:
      free: bool[height, width].
      source: x and y of its cell, free.
      reach: cells, > 0.

    Raises `ValidationError` for a reach that is not > 0 and finite.
    """
    require_positive("reach", reach)
    x, y = source
    strength = np.zeros(free.shape)
    strength[y, x] = 1.0
    field = np.zeros(free.shape)
    residual = strength
    direction, norm = residual, np.vdot(residual, residual)
    # In exact arithmetic it ends after as many rounds as there are cells, in practice far sooner.
    for _ in range(4 * free.size):
        if norm <= _SMALLEST:
            break
        image = lost(direction, free, reach)
        step = norm / np.vdot(direction, image)
        field, residual = field + step * direction, residual - step * image
        before, norm = norm, np.vdot(residual, residual)
        direction = residual + norm / before * direction
    # What rounding has left below 0, far from the source, is none.
    return np.maximum(field, 0.0) / field[y, x]


_SMALLEST = 1e-30


def lost(field: np.ndarray, free: np.ndarray, reach: float) -> np.ndarray:
    """float64[height, width]: what each free cell loses to its free neighbours and by decay, in a
    field that is 0 in walls; 0 in walls."""
    inside, c = np.pad(free, 1), np.pad(field, 1)
    flow = np.zeros(field.shape)
    for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        beside = np.roll(inside, (dy, dx), (0, 1))[1:-1, 1:-1]
        flow += beside * (field - np.roll(c, (dy, dx), (0, 1))[1:-1, 1:-1])
    return free * (flow + field / reach**2)
