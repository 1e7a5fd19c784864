"""testing/adapter: Gymnasium's own checks of a search, through our adapter."""

import warnings
from typing import Any

from plumejax.base import paths
from plumejax.base.environment import Environment
from plumejax.base.randomised import Distribution, Randomised
from plumejax.search.components import METHODS
from plumejax.search.environment import PlumeSearch
from plumejax.testing.forms import require_that

ADVICE = (
    "not having a spec",  # it has none: it need not be registered
    "symmetric and normalized",  # and its actions may have units
    "infinity",  # a box may be open
)
"""What Gymnasium's warnings of advice, not of rules, have in them."""


def is_search(env: Environment) -> bool:
    """Whether our Gymnasium adapter runs it."""
    return type(_search(env)) is PlumeSearch


def check_adapter(env: Environment, params: Any) -> None:
    """`PlumeSearchEnv` of this search passes Gymnasium's `check_env`, whose warnings are errors."""
    from gymnasium.utils.env_checker import check_env

    from plumejax.adapters.gymnasium import EnvironmentConfig, PlumeSearchEnv

    require_that(is_search(env), f"{env.name} is no search of one agent")
    search: Any = _search(env)
    numbers = paths.leaves(params, is_leaf=lambda part: isinstance(part, Distribution))
    config = EnvironmentConfig(
        "PlumeSearch-v0",
        static={role: getattr(search, role) for role in METHODS},
        overrides=numbers,
    )
    adapted = PlumeSearchEnv(config=config)
    require_that(adapted.core == env, f"the adapter runs {adapted.core!r}, not {env!r}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(adapted, skip_render_check=True)
    said = [str(w.message) for w in caught]
    said = [message for message in said if not any(advice in message for advice in ADVICE)]
    require_that(not said, f"Gymnasium warns: {'; '.join(said)}")


def _search(env: Environment) -> Environment:
    return env.env if isinstance(env, Randomised) else env
