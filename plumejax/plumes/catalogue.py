"""plumes/catalogue: plumes by name, with the numbers of the papers they are from."""

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from math import pi
from typing import Any, NamedTuple

import numpy as np

from plumejax.base.errors import ValidationError, require
from plumejax.plumes.encounters import CASES
from plumejax.plumes.filaments import FarrellWind, FilamentPlume, TrackingPlume
from plumejax.plumes.flow import TracerPlume
from plumejax.plumes.gaussian import AnisotropicGaussianPlume, GaussianPlume, WindGaussianPlume
from plumejax.plumes.packets import (
    OrnsteinUhlenbeckCrosswind,
    PacketPlume,
    RenewalCrosswind,
    TelegraphCrosswind,
    WhiteCrosswind,
)
from plumejax.plumes.turbulence import TurbulentPlume
from plumejax.plumes.wind import Constant, SwitchMany, SwitchOnce

Made = tuple[Any, Any]


class Preset(NamedTuple):
    """A plume by name.

    Attributes:
      about: one line, with the source.
      make: `(plume, params)`; what it is given replaces static choices of the plume.
      low, high: the corners of a box worth looking at, lengths of the plume.
      length: the unit of length.
      time: the unit of time, "step" where the model knows no seconds.
    """

    about: str
    make: Callable[..., Made]
    low: tuple[float, float]
    high: tuple[float, float]
    length: str
    time: str


def _default(kind: Callable[..., Any], **fixed: Any) -> Callable[..., Made]:
    """The maker of a plume of `kind` with its own numbers."""

    def make(**static: Any) -> Made:
        plume = kind(**{**fixed, **static})
        return plume, plume.default_params()

    return make


def farrell(wind: Any = None, **static: Any) -> Made:
    """Farrell et al. 2002: puffs in the wind that wanders, or in another wind.

    A constant wind gets the same mean, 1 m/s along x.
    """
    plume = FilamentPlume(wind=FarrellWind() if wind is None else wind, **static)
    params = plume.default_params()
    if wind == Constant():
        east = params.wind.replace(velocity=np.asarray([1.0, 0.0], np.float32))
        params = params.replace(wind=east)
    return plume, params


def tracking_code(wind: Any = Constant(), **static: Any) -> Made:
    """The puffs of Singh et al. 2023 as the published code has them."""
    plume = TrackingPlume(wind=wind, **static)
    return plume, plume.default_params()


def tracking_paper(wind: Any = Constant(), **static: Any) -> Made:
    """The puffs of Singh et al. 2023 as the paper has them: gone beyond |y| = 5 m, not 10 m."""
    plume, params = tracking_code(wind, **static)
    low, high = np.asarray([-2.0, -5.0], np.float32), np.asarray([10.0, 5.0], np.float32)
    return plume, params.replace(low=low, high=high)


def sparse(make: Callable[..., Made], **static: Any) -> Made:
    """The published sparse variant: 40 % of the puffs, growing half as fast."""
    plume, params = make(**static)
    return plume, params.replace(keep=np.float32(0.4), growth=np.float32(0.005))


def _tracking() -> dict[str, Preset]:
    presets = {}
    for name, make, wide in (
        ("tracking-code", tracking_code, 10.0),
        ("tracking-paper", tracking_paper, 5.0),
    ):
        variants: dict[str, tuple[Callable[..., Made], str]] = {
            "": (make, "constant wind"),
            "-sparse": (partial(sparse, make), "sparse, constant wind"),
            # Slots for all puffs of the longest way: 28 s at 45 degrees, 40 s at 60.
            "-switch-once": (
                partial(make, wind=SwitchOnce(), capacity=3072),
                "the wind turns by 45 degrees after 60 s",
            ),
            "-switch-many": (
                partial(make, wind=SwitchMany(), capacity=4224),
                "the wind turns every 3 s",
            ),
        }
        origin = f"plume tracking, Singh et al. 2023, {name.removeprefix('tracking-')}"
        for suffix, (variant, what) in variants.items():
            presets[name + suffix] = Preset(
                f"{origin}: {what}", variant, (-2.0, -wide / 2), (10.0, wide / 2), "m", "s"
            )
    return presets


def _encounters() -> dict[str, Preset]:
    presets = {}
    for name, case in CASES.items():
        width, height = case()[0].grid_size
        origin = "Celani et al. 2014" if name == "cosh" else "Loisy and Heinonen 2023"
        presets[name] = Preset(
            f"mean rates of encounters, {origin}",
            case,
            (0.0, 0.0),
            (width - 1.0, height - 1.0),
            "cells",
            "step",
        )
    return presets


def _packets() -> dict[str, Preset]:
    kinds = {
        "ou": (OrnsteinUhlenbeckCrosswind(), "Ornstein-Uhlenbeck"),
        "telegraph": (TelegraphCrosswind(), "telegraph"),
        "renewal": (RenewalCrosswind(), "renewal"),
        "white": (WhiteCrosswind(), "white"),
    }
    return {
        f"packets-{name}": Preset(
            f"packets in a constant wind, {what} crosswind velocity, Kadakia et al. 2022",
            _default(PacketPlume, crosswind=kind),
            (-20.0, -150.0),
            (600.0, 150.0),
            "mm",
            "s",
        )
        for name, (kind, what) in kinds.items()
    }


PRESETS: dict[str, Preset] = {
    "gaussian": Preset(
        "a static Gaussian, the plume of PlumeSearch-v0",
        _default(GaussianPlume),
        (0.0, 0.0),
        (127.0, 127.0),
        "cells",
        "step",
    ),
    "gaussian-long": Preset(
        "a static Gaussian of two widths",
        _default(AnisotropicGaussianPlume),
        (0.0, 0.0),
        (127.0, 127.0),
        "cells",
        "step",
    ),
    "gaussian-wind": Preset(
        "the time-averaged plume of a point source in wind, over ground that reflects",
        _default(WindGaussianPlume),
        (-2.0, -6.0),
        (20.0, 6.0),
        "m",
        "s",
    ),
    **_encounters(),
    **_packets(),
    "farrell": Preset(
        "puffs in a wandering wind, Farrell et al. 2002",
        farrell,
        (0.0, -12.5),
        (50.0, 12.5),
        "m",
        "s",
    ),
    "farrell-straight": Preset(
        "the puffs of Farrell et al. 2002 in a constant wind",
        partial(farrell, wind=Constant()),
        (0.0, -12.5),
        (50.0, 12.5),
        "m",
        "s",
    ),
    **_tracking(),
    "fourier-flow": Preset(
        "tracers in a random flow of eight modes, Durve et al. 2020",
        _default(TracerPlume),
        (-5.0, -12.0),
        (40.0, 12.0),
        "m",
        "s",
    ),
    "turbulence": Preset(
        "two-dimensional turbulence of our own",
        _default(TurbulentPlume),
        (0.0, 0.0),
        (4 * pi, 2 * pi),
        "m",
        "s",
    ),
}
"""Every plume that has a name."""


def make(name: str, **static: Any) -> Made:
    """`(plume, params)` of the plume called `name`; `static` replaces static choices.

    Raises `ValidationError` if there is no such plume, or it has no such choice.
    """
    require(name in PRESETS, "plume", name, f"one of {', '.join(PRESETS)}")
    try:
        return PRESETS[name].make(**static)
    except TypeError as error:
        choices = [field.name for field in fields(PRESETS[name].make()[0])]
        more = ", ".join(sorted(set(static) - set(choices)))
        if not more:
            raise
        raise ValidationError(
            f"{name} has no static choice {more}; it has {', '.join(choices)}"
        ) from error
