"""base/spaces: the few spaces we need, usable inside jit; the adapters convert them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np


class Space(Protocol):
    """What a space can do; both methods are pure and may be traced."""

    def sample(self, key: jax.Array) -> Any:
        """A uniform member of the space."""

    def contains(self, x: Any) -> jax.Array:
        """bool[]: whether `x` is a member; a wrong shape or kind of dtype is not one."""


@dataclass(frozen=True)
class Discrete:
    """The integers 0..n-1, int32."""

    n: int

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def dtype(self) -> Any:
        return np.int32

    def sample(self, key: jax.Array) -> jax.Array:
        if self.n & (self.n - 1):
            return jax.random.randint(key, (), 0, self.n, jnp.int32)
        # One word instead of four: drawing takes longer than most steps.
        return (jax.random.bits(key, (), jnp.uint32) & jnp.uint32(self.n - 1)).astype(jnp.int32)

    def contains(self, x: Any) -> jax.Array:
        x = jnp.asarray(x)
        if x.shape != () or not jnp.issubdtype(x.dtype, jnp.integer):
            return jnp.asarray(False)
        return (x >= 0) & (x < self.n)


@dataclass(frozen=True)
class MultiDiscrete:
    """Several integers, int32[len(nvec)], the i-th of 0..nvec[i]-1."""

    nvec: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.nvec),)

    @property
    def dtype(self) -> Any:
        return np.int32

    def sample(self, key: jax.Array) -> jax.Array:
        return jax.random.randint(key, self.shape, 0, np.asarray(self.nvec, np.int32), jnp.int32)

    def contains(self, x: Any) -> jax.Array:
        x = jnp.asarray(x)
        if x.shape != self.shape or not jnp.issubdtype(x.dtype, jnp.integer):
            return jnp.asarray(False)
        return jnp.all((x >= 0) & (x < np.asarray(self.nvec, x.dtype)))


@dataclass(frozen=True, eq=False)
class Box:
    """Arrays of one shape and dtype between `low` and `high`, both inclusive.

    `low` and `high` are numbers or arrays that broadcast to `shape`; they may depend on traced
    params.
    """

    low: Any
    high: Any
    shape: tuple[int, ...]
    dtype: Any = np.float32

    def sample(self, key: jax.Array) -> jax.Array:
        low = jnp.broadcast_to(jnp.asarray(self.low, self.dtype), self.shape)
        high = jnp.broadcast_to(jnp.asarray(self.high, self.dtype), self.shape)
        if jnp.issubdtype(self.dtype, jnp.integer):
            return jax.random.randint(key, self.shape, low, high + 1, self.dtype)
        return jax.random.uniform(key, self.shape, self.dtype, low, high)

    def contains(self, x: Any) -> jax.Array:
        x = jnp.asarray(x)
        kind = jnp.integer if jnp.issubdtype(self.dtype, jnp.integer) else jnp.floating
        if x.shape != tuple(self.shape) or not jnp.issubdtype(x.dtype, kind):
            return jnp.asarray(False)
        low = jnp.broadcast_to(jnp.asarray(self.low, x.dtype), self.shape)
        high = jnp.broadcast_to(jnp.asarray(self.high, x.dtype), self.shape)
        return jnp.all((x >= low) & (x <= high))


@dataclass(frozen=True, eq=False)
class Dict:
    """A mapping from names to spaces; its members are plain dicts."""

    spaces: Mapping[str, Any]

    def sample(self, key: jax.Array) -> dict[str, Any]:
        keys = jax.random.split(key, len(self.spaces))
        return {name: s.sample(k) for (name, s), k in zip(self.spaces.items(), keys, strict=True)}

    def contains(self, x: Any) -> jax.Array:
        if not isinstance(x, Mapping) or set(x) != set(self.spaces):
            return jnp.asarray(False)
        return jnp.all(jnp.stack([s.contains(x[name]) for name, s in self.spaces.items()]))
