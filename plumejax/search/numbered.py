"""search/numbered: how a named task puts its own components together, each with its numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from plumejax.base import paths
from plumejax.plumes.interface import clock
from plumejax.search.environment import PlumeSearch
from plumejax.search.state import Params
from plumejax.search.tasks import plume_search

Numbered = tuple[Any, Any]
"""A component and its numbers."""


def numbered(component: Any, numbers: Mapping[str, Any]) -> Numbered:
    """A component and the numbers that it proposes, those at the given dotted paths replaced."""
    return component, paths.override(component.default_params(), numbers)


def numbered_search(
    parts: Mapping[str, Numbered], max_steps: int, static: Mapping[str, Any], dt: float = 1.0
) -> tuple[PlumeSearch, Params]:
    """`(env, params)` of the parts that `static` does not replace, with their numbers.

    Args:
      parts: by role, all seven or those that are not the defaults of `plume_search`.
      max_steps: steps after which an episode is truncated.
      static: components, as in `plume_search`; what replaces a part has its own numbers.
      dt: s, what a step takes if the plume knows no time.
    """
    components = {role: component for role, (component, _) in parts.items()}
    env, params = plume_search(**{**components, **static})
    ours = {role: numbers for role, (_, numbers) in parts.items() if role not in static}
    params = params.replace(max_steps=np.int32(max_steps), **ours)
    seconds = clock(env.plume, params.plume)
    return env, params.replace(dt=np.float32(dt if seconds is None else seconds))
