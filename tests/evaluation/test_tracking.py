"""tests/evaluation/test_tracking: the published test of plume trackers."""

import jax
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.evaluation.tracking import VARIANTS, exam, sit
from plumejax.policies.reactive import Random


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_starts_are_the_published_ones(variant):
    """Singh et al. 2023: x in 4, 6, 8 m, two moments a second apart, 5 places, 8 headings."""
    test = exam(variant, jax.random.key(3), diffusion=0.5)
    start = test.params.start
    assert len(start.frames) == 240
    assert test.puffs_in_reach.all()
    assert np.unique(start.frames).tolist() == [0, 25]
    assert np.unique(start.positions[:, 0]).tolist() == [4, 6, 8]
    assert np.unique(start.headings).tolist() == [0, 45, 90, 135, 180, 225, 270, 315]
    puffs = jax.device_get(test.params.plume.frames.particles)
    near = puffs.alive[25] & (np.abs(puffs.position[25, 0] - 6) < 0.5)
    y = puffs.position[25, 1, near]
    here = (start.frames == 25) & (start.positions[:, 0] == 6)
    places = np.unique(start.positions[here, 1])
    assert len(places) == 5
    beside = 0.5 if variant == "constant" else 0.0
    assert places[0] == pytest.approx(y.min() - beside, abs=1e-5)
    assert places[-1] == pytest.approx(y.max() + beside, abs=1e-5)
    # Nobody is lost where the test begins, and no puff has been held back at the source.
    assert (np.where(puffs.alive, puffs.position[:, 0], 99).min(1) < 0.2).all()
    growth = test.params.plume.plume.growth
    assert growth == np.float32(0.005)
    outcomes = sit(Random(test.env.action_space(test.params)), test, jax.random.key(0))
    assert len(outcomes.found) == 240
    assert outcomes.found.mean() < 0.1
    assert outcomes.steps.min() >= 2


def test_another_variant_is_refused():
    with pytest.raises(ValidationError, match=r"variant = 'switchmany' .* switch-many"):
        exam("switchmany", jax.random.key(0))


@pytest.mark.parametrize("given", [{"edition": "code"}, {"diffusion": -1.0}])
def test_another_edition_or_puffs_that_shrink_are_refused(given):
    with pytest.raises(ValidationError, match=f"{next(iter(given))} = "):
        exam("constant", jax.random.key(0), **given)
