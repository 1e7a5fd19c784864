"""adapters/packing: a tree as few arrays, since each array that the host handles costs a step."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

LARGE = 2**14
"""An array of as many numbers travels alone: copying it would cost more than handling it."""

SMALL = (np.bool_, np.int32, np.uint32, np.float32)
"""Dtypes of what travels together: what 32 bits hold and `view` gives back."""

Arrays = tuple[Any, ...]
"""A packed tree: int32[k], the bits of all small leaves in their order, then the other leaves."""


class Place(NamedTuple):
    """Where a leaf lies among the bits.

    Attributes:
      start, stop: of its numbers.
      dtype: None for a bool, which is a number that is not 0.
      shape: its own.
    """

    start: int
    stop: int
    dtype: Any
    shape: tuple[int, ...]


class Layout(NamedTuple):
    """Where the leaves of a tree lie in its `Arrays`; hashable, compared by value.

    Attributes:
      structure: of the tree.
      places: of each leaf; an int says which of the arrays it is.
    """

    structure: Any
    places: tuple[Place | int, ...]

    def member(self, index: int) -> "Layout":
        """That of a member of the tree, in the same arrays."""
        children = self.structure.children()
        start = sum(child.num_leaves for child in children[:index])
        child = children[index]
        return Layout(child, self.places[start : start + child.num_leaves])


@partial(jax.tree_util.register_dataclass, data_fields=["arrays"], meta_fields=["layout"])
@dataclass(frozen=True)
class Packed:
    """A packed tree, with its layout (static)."""

    arrays: Arrays
    layout: Layout


def pack(tree: Any) -> Packed:
    """`tree`, packed; pure."""
    leaves, structure = jax.tree.flatten(tree)
    bits, alone, stop = [jnp.zeros(0, jnp.int32)], [], 0
    places: list[Place | int] = []
    for leaf in map(jnp.asarray, leaves):
        if leaf.dtype not in SMALL or leaf.size >= LARGE:
            alone.append(leaf)
            places.append(len(alone))
            continue
        is_bool = leaf.dtype == np.bool_
        flat = leaf.reshape(-1)
        bits.append(flat.astype(jnp.int32) if is_bool else flat.view(jnp.int32))
        start, stop = stop, stop + leaf.size
        places.append(Place(start, stop, None if is_bool else leaf.dtype, leaf.shape))
    return Packed((jnp.concatenate(bits), *alone), Layout(structure, tuple(places)))


def unpack(arrays: Arrays, layout: Layout) -> Any:
    """The tree with that layout in `arrays`, which are JAX's or NumPy's; pure.

    A leaf among the bits of a NumPy array is a view of it, unless it is a bool.
    """
    leaves = []
    for place in layout.places:
        if isinstance(place, int):
            leaves.append(arrays[place])
            continue
        start, stop, dtype, shape = place
        part = arrays[0][start:stop]
        part = part != 0 if dtype is None else part.view(dtype)
        leaves.append(part if part.shape == shape else part.reshape(shape))
    return layout.structure.unflatten(leaves)
