"""plumes/ground: filaments over ground that takes up odour."""

from dataclasses import dataclass

import jax

from plumejax.plumes.filaments import FilamentParams, FilamentPlume
from plumejax.plumes.puffs import PuffState


@dataclass(frozen=True)
class FilamentsOverGround(FilamentPlume):
    """A `FilamentPlume` over the plane z = 0, which adsorbs: a puff whose middle has come to it is
    gone.

    Of a source near the ground, odour far downwind is then high above it, and what is left there
    comes from the puffs' lower flanks. Of puffs that walk by D from a height h, the share
    `erf(h / (2 sqrt(D t)))` is there after t, if the steps are short.

    Attributes: those of `FilamentPlume`.
    """

    def _step(self, key: jax.Array, state: PuffState, params: FilamentParams) -> PuffState:
        state = super()._step(key, state, params)
        puffs = state.particles
        above = puffs.position[2] > 0
        return state.replace(particles=puffs.replace(alive=puffs.alive & above))
