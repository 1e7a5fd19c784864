"""policies/catalogue: policies by name, and how each is made for a task."""

import inspect
from collections.abc import Callable
from typing import Any, get_args

from plumejax.arms import controllers
from plumejax.base.errors import ValidationError, require
from plumejax.policies import (
    animals,
    bayesian,
    cast_and_surge,
    chemotaxis,
    particles,
    reactive,
    recoveries,
    whiff_flies,
)
from plumejax.policies.greedy import greedy
from plumejax.search.truth import told

Prepared = tuple[Any, Any, Any]
"""`(env, params, policy)`: the task as the policy observes it."""

ANYWHERE = ("random",)
"""Names of the policies that act in every task, odour or not."""

PERFECT = "perfect"
"""The name of the agent that is told everything, and need not search."""


def policies() -> dict[str, Callable[..., Any]]:
    """Every policy by name, as `factory(env, params, **arguments)`; not `perfect`, which sees what
    no policy sees."""
    reacting = (reactive, chemotaxis, cast_and_surge, recoveries)
    modules = (*reacting, animals, whiff_flies, bayesian, particles, controllers)
    return {name: factory for module in modules for name, factory in module.POLICIES.items()}


def describe(name: str) -> str:
    """One line on the policy called `name`."""
    factory = greedy if name == PERFECT else policies()[name]
    return (inspect.getdoc(factory) or "").splitlines()[0]


def prepare(name: str, env: Any, params: Any, **arguments: Any) -> Prepared:
    """The task and the policy called `name` on it; only `perfect` observes otherwise than the task.

    Args:
      name: of a policy, or "perfect".
      env, params: the task.
      **arguments: of the policy.

    Raises:
      ValidationError: no such policy, one that does not fit the task, or no such argument.
    """
    if name == PERFECT:
        good = not hasattr(env, "task")
        require(good, "policy", name, f"for a search: in {env.name} nothing is sought")
        env, params = told(env, params)
        return env, params, _made(name, greedy, env, params, arguments)
    known = policies()
    require(name in known, "policy", name, f"one of {', '.join([PERFECT, *known])}")
    searches = name not in ANYWHERE and name not in controllers.POLICIES
    others = ", ".join((*ANYWHERE, *controllers.POLICIES))
    good = not (searches and hasattr(env, "task"))
    require(good, "policy", name, f"{others}: {env.name} has no odour")
    return env, params, _made(name, known[name], env, params, arguments)


def _made(name: str, factory: Callable[..., Any], env: Any, params: Any, arguments: Any) -> Any:
    known = inspect.signature(factory).parameters
    _, _, *takes = known
    wrong = sorted(set(arguments) - set(takes))
    if wrong:
        has = f"it takes {', '.join(takes)}" if takes else "it takes none"
        raise ValidationError(f"{name} has no argument {', '.join(wrong)}; {has}")
    for argument, value in arguments.items():
        _require_kind(f"{name}: {argument}", value, known[argument].annotation)
    return factory(env, params, **arguments)


def _require_kind(what: str, value: Any, hint: Any) -> None:
    """Raise `ValidationError` unless `value` is a number where `hint` says that it is one."""
    kinds = {hint, *get_args(hint)}
    if not kinds & {int, float} or (value is None and type(None) in kinds):
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if float in kinds:
        require(number, what, value, "a number")
    else:
        require(number and isinstance(value, int), what, value, "a whole number")
