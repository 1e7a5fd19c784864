"""base/randomised: Randomised, a task some of whose numbers are drawn anew at each reset."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from plumejax.base import paths
from plumejax.base.environment import Environment
from plumejax.base.errors import ValidationError, require
from plumejax.base.spaces import Box, Dict

Params = TypeVar("Params")


class Distribution(struct.PyTreeNode):
    """Stands in the params for a number that is drawn at each reset.

    Its own numbers are leaves of the params like any others, so they have dotted paths
    (`plume.sigma.high`), may be swept, and change without recompiling. Give them as Python numbers;
    `fitted` makes them arrays of the dtype and shape of the number that is drawn. With one number
    for a whole array, each element is drawn on its own.
    """

    kinds: ClassVar[str] = "f"
    """NumPy's letters of the kinds of number that it can draw."""

    def draw(self, key: jax.Array) -> jax.Array:
        """A number; the key is consumed."""
        raise NotImplementedError

    def ends(self) -> tuple[Any, ...]:
        """The values to check a task at, the lowest first, the highest last."""
        raise NotImplementedError

    def validate(self, path: str) -> None:
        """Raise `ValidationError` unless it can be drawn from. Host only."""

    def fitted(self, path: str, old: Any) -> "Distribution":
        """Itself with numbers like `old`, the number at `path`. Raises `ValidationError`."""
        kind = np.asarray(old).dtype.kind
        if kind not in self.kinds:
            raise ValidationError(
                f"{path} = {self!r} does not fit: {type(self).__name__} cannot draw a number of"
                f" dtype {np.asarray(old).dtype}"
            )
        return self.replace(**self._numbers_like(path, old))

    def _numbers_like(self, path: str, old: Any) -> dict[str, Any]:
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _spread(f"{path}.{name}", value, old) for name, value in own.items()}


class Uniform(Distribution):
    """Uniform in [low, high).

    Attributes:
      low, high: in the unit of the number, low <= high.
    """

    low: Any
    high: Any

    def draw(self, key: jax.Array) -> jax.Array:
        low = jnp.asarray(self.low)
        return jax.random.uniform(key, low.shape, low.dtype, low, jnp.asarray(self.high))

    def ends(self) -> tuple[Any, ...]:
        return self.low, self.high

    def validate(self, path: str) -> None:
        _require_order(self, path)


class LogUniform(Distribution):
    """Uniform in the logarithm, within [low, high].

    Attributes:
      low, high: in the unit of the number, 0 < low <= high.
    """

    low: Any
    high: Any

    def draw(self, key: jax.Array) -> jax.Array:
        low, high = jnp.asarray(self.low), jnp.asarray(self.high)
        power = jax.random.uniform(key, low.shape, low.dtype, jnp.log(low), jnp.log(high))
        return jnp.clip(jnp.exp(power), low, high)

    def ends(self) -> tuple[Any, ...]:
        return self.low, self.high

    def validate(self, path: str) -> None:
        require(np.all(np.asarray(self.low) > 0), f"{path}.low", self.low, "> 0")
        _require_order(self, path)


class Normal(Distribution):
    """Normal; what falls outside [low, high] becomes the nearer of the two.

    Attributes:
      mean, sd: in the unit of the number, sd >= 0.
      low, high: in the unit of the number, low <= high.
    """

    mean: Any
    sd: Any
    low: Any
    high: Any

    def draw(self, key: jax.Array) -> jax.Array:
        mean, sd, low, high = map(jnp.asarray, (self.mean, self.sd, self.low, self.high))
        return jnp.clip(mean + sd * jax.random.normal(key, mean.shape, mean.dtype), low, high)

    def ends(self) -> tuple[Any, ...]:
        return self.low, self.high

    def validate(self, path: str) -> None:
        require(np.all(np.isfinite(np.asarray(self.mean))), f"{path}.mean", self.mean, "finite")
        sd = np.asarray(self.sd)
        require(np.all((sd >= 0) & np.isfinite(sd)), f"{path}.sd", self.sd, "finite and >= 0")
        _require_order(self, path)


class IntegerRange(Distribution):
    """The whole numbers from low to high, both included, equally likely; of a float, too.

    Attributes:
      low, high: whole numbers, low <= high, of less than 31 bits.
    """

    kinds: ClassVar[str] = "iuf"

    low: Any
    high: Any

    def draw(self, key: jax.Array) -> jax.Array:
        low, high = (jnp.asarray(end).astype(jnp.int32) for end in (self.low, self.high))
        drawn = jax.random.randint(key, low.shape, low, high + 1, jnp.int32)
        return drawn.astype(jnp.asarray(self.low).dtype)

    def ends(self) -> tuple[Any, ...]:
        return self.low, self.high

    def validate(self, path: str) -> None:
        for name, end in (("low", self.low), ("high", self.high)):
            whole = np.all((np.asarray(end) == np.round(end)) & (np.abs(np.asarray(end)) < 2**30))
            require(whole, f"{path}.{name}", end, "whole, between -2**30 and 2**30")
        _require_order(self, path)


class Choice(Distribution):
    """One of some values, equally likely.

    Attributes:
      values: [k, ...], k >= 1 values, each of the shape of the number (positions, masks, ...).
    """

    kinds: ClassVar[str] = "biuf"

    values: Any

    def draw(self, key: jax.Array) -> jax.Array:
        values = jnp.asarray(self.values)
        return values[jax.random.randint(key, (), 0, len(values), jnp.int32)]

    def ends(self) -> tuple[Any, ...]:
        """All of them: that the first and the last are allowed says nothing of the others."""
        return tuple(self.values)

    def _numbers_like(self, path: str, old: Any) -> dict[str, Any]:
        some = isinstance(self.values, list | tuple | np.ndarray) and len(self.values) > 0
        require(some, f"{path}.values", self.values, "a list of one value or more")
        return {"values": np.stack([paths.fit(path, value, old) for value in self.values])}


def distributions(params: Any) -> dict[str, Distribution]:
    """What stands in `params` for numbers that are drawn, by the numbers' paths, in order."""
    parts = paths.leaves(params, is_leaf=_is_distribution)
    return {path: part for path, part in parts.items() if _is_distribution(part)}


def override(params: Params, values: Mapping[str, Any]) -> Params:
    """As `paths.override`; a value may be a `Distribution`, and may take the place of one."""
    for path, old in distributions(params).items():
        if path in values:
            params = paths.replace(params, path, np.asarray(old.ends()[0]))
    params = paths.override(
        params, {path: value for path, value in values.items() if not _is_distribution(value)}
    )
    for path, value in values.items():
        if _is_distribution(value):
            params = paths.replace(params, path, value.fitted(path, paths.find(params, path)))
    return params


def corners(params: Params) -> Iterator[Params]:
    """`params` with numbers in place of distributions: all lowest first, all highest last.

    A `Choice` takes each of its values; `params` without a distribution are themselves.
    """
    ends = {path: each.ends() for path, each in distributions(params).items()}
    for i in range(max(map(len, ends.values()), default=1)):
        yield _with(params, {path: each[min(i, len(each) - 1)] for path, each in ends.items()})


@dataclass(frozen=True)
class Randomised(Environment):
    """`env`, whose params may hold a `Distribution` in place of any number.

    Such a number is drawn at each reset and kept in `state.drawn`, by path; the episode steps under
    it. What is drawn is said by the params alone, so equal tasks share their compilation whatever
    they draw from. The spaces are those of the ends of the distributions, put together; a motion is
    handed any action of that space. All else that `env` has is read through.

    `randomised` makes one, and `make(id, overrides={"plume.sigma": Uniform(4.0, 12.0)})`.

    Attributes:
      env: the task.
    """

    env: Environment

    @property
    def name(self) -> str:
        return self.env.name

    @property
    def random_step(self) -> bool:
        return self.env.random_step

    def __getattr__(self, name: str) -> Any:
        # Copies and pickles ask before there is an `env` to ask.
        if name == "env" or name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.env, name)

    @property
    def num_agents(self) -> int | None:
        return self.env.num_agents

    def default_params(self) -> Any:
        """What `env` proposes, which draws nothing."""
        return self.env.default_params()

    def episode_params(self, state: Any, params: Any) -> Any:
        return self.env.episode_params(state, _with(params, state.drawn))

    def reset_env(self, key: jax.Array, params: Any) -> Any:
        draw_key, reset_key = jax.random.split(key)
        each = distributions(params)
        keys = jax.random.split(draw_key, len(each))
        drawn = {path: d.draw(k) for (path, d), k in zip(each.items(), keys, strict=True)}
        state = self.env.reset_env(reset_key, _with(params, drawn))
        return state.replace(drawn=drawn)

    def step_env(
        self, key: jax.Array, state: Any, action: Any, params: Any
    ) -> tuple[Any, jax.Array, jax.Array]:
        return self.env.step_env(key, state, action, self.episode_params(state, params))

    def info(self, state: Any, params: Any) -> dict[str, jax.Array]:
        return self.env.info(state, self.episode_params(state, params))

    def broken(self, state: Any, params: Any) -> dict[str, jax.Array]:
        return self.env.broken(state, self.episode_params(state, params))

    def action_space(self, params: Any) -> Any:
        return reduce(_union, [self.env.action_space(corner) for corner in corners(params)])

    def observation_space(self, params: Any) -> Any:
        return reduce(_union, [self.env.observation_space(corner) for corner in corners(params)])

    def validate(self, params: Any) -> None:
        """Raise `ValidationError` if a distribution is none, or `env` not allowed at its ends."""
        for path, each in distributions(params).items():
            each.validate(path)
        for corner in corners(params):
            self.env.validate(corner)


def randomised(env: Environment, params: Any, values: Mapping[str, Any]) -> tuple[Environment, Any]:
    """`(env, params)` with the numbers at the given paths drawn anew at each reset.

    Args:
      env, params: a task, which may be randomised already.
      values: distributions by dotted path; numbers are put in as they are. Where nothing is drawn
        in the end, `env` comes back as it is.

    Raises `ValidationError` for a path that is not there and for what does not fit. Whether the
    numbers are allowed is for `env.validate` to say.
    """
    params = override(params, values)
    if isinstance(env, Randomised) or not distributions(params):
        return env, params
    return Randomised(env), params


def _is_distribution(part: Any) -> bool:
    return isinstance(part, Distribution)


def _with(params: Params, drawn: Any) -> Params:
    """`params` with the numbers drawn; nothing to do where they are in already."""
    for path, value in dict(drawn).items():
        params = paths.replace(params, path, value)
    return params


def _spread(path: str, value: Any, old: Any) -> np.ndarray:
    """`value` like `old`; one number is meant for every element."""
    one = isinstance(value, int | float | np.generic) or getattr(value, "shape", None) == ()
    return paths.fit(path, np.full(np.shape(old), value) if one else value, old)


def _require_order(distribution: Any, path: str) -> None:
    low, high = distribution.low, distribution.high
    ordered = np.all(np.asarray(low) <= np.asarray(high))
    require(ordered, f"{path}.low", low, f"<= {path}.high = {np.asarray(high).tolist()}")


def _union(a: Any, b: Any) -> Any:
    """The smallest space of the same kind that holds both, of two of the same shape."""
    if isinstance(a, Box):
        return replace(a, low=jnp.minimum(a.low, b.low), high=jnp.maximum(a.high, b.high))
    if isinstance(a, Dict):
        return Dict({name: _union(space, b.spaces[name]) for name, space in a.spaces.items()})
    return a
