"""base/compiling: `jax.jit` for functions that are given pytrees of classes of others, as policies.

JAX looks a compiled function up by the structure of its arguments. Two of different classes that
hold alike count as equal there where both are registered as dataclasses (seen in 0.10.2). Only
their hashes tell them apart, and not always: in one or two processes of a hundred the second was
run as the first had been compiled.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from inspect import Parameter, signature
from typing import Any

import jax


def jit_by_class(
    *, static: tuple[str, ...] = (), donate: tuple[str, ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: `jax.jit` that compiles anew for every class of what is in the arguments.

    Args:
      static: names of arguments that are static.
      donate: names of arguments that are donated.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def own(*args: Any, classes: str, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        # By this JAX knows which argument has which name.
        known = signature(function)
        more = Parameter("classes", Parameter.KEYWORD_ONLY)
        vars(own)["__signature__"] = known.replace(parameters=[*known.parameters.values(), more])
        own.__name__ = function.__name__
        names = (*static, "classes")
        compiled = jax.jit(own, static_argnames=names, donate_argnames=donate)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return compiled(*args, **kwargs, classes=_classes(jax.tree.structure((args, kwargs))))

        return call

    return decorate


@lru_cache(1024)
def _classes(structure: Any) -> str:
    """What JAX prints of a structure names every class in it. (A `dict` asks whether structures are
    equal only where all of their hashes are.)"""
    return str(structure)
