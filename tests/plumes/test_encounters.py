"""tests/plumes/test_encounters: the published tables in float64, and the laws' properties."""

import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy.special import k0, k0e
from scipy.stats import poisson

from plumejax.base.errors import ValidationError
from plumejax.plumes.bessel import scaled_k0
from plumejax.plumes.encounters import (
    CASES,
    Cosh,
    EncounterPlume,
    Isotropic,
    IsotropicParams,
    Windy,
    entropy,
    first_hit_probabilities,
    hit_probabilities,
    isotropic_rate,
    likelihoods,
    mean_distance,
    num_hits,
    posterior,
    uniform_prior,
)
from plumejax.plumes.sources import Drift

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "encounters.json").read_text())


@pytest.fixture
def x64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def isotropic(row):
    plume = EncounterPlume(Isotropic(), (row["N"],) * row["n"])
    law = IsotropicParams(np.float64(row["L"]), np.float64(row["I"]))
    return plume, plume.default_params().replace(law=law)


@partial(jax.jit, static_argnames=("plume", "hits", "categories"))
def believe(plume, params, place, hits, categories):
    """The belief after the first count, `hits`, at `place`; its entropy and mean distance."""
    likelihood = likelihoods(plume, params, place, categories)[hits]
    belief = posterior(uniform_prior(plume.grid_size, place), likelihood)
    return belief, entropy(belief), mean_distance(belief, place)


def read(plume, params, places):
    """The air at `places` when an episode starts."""
    return SAMPLE(plume, plume.start(jax.random.key(0), params), places, params)


SAMPLE = jax.jit(lambda plume, *args: plume.sample(*args), static_argnums=0)


@pytest.mark.parametrize("row", GOLDEN["isotropic"], ids=lambda row: f"{row['n']}-D L{row['L']}")
def test_table_of_isotropic_rates(x64, row):
    mu = float(isotropic_rate(jnp.ones(()), float(row["L"]), float(row["I"]), row["n"]))
    assert abs(mu - row["mu1"]) < 5.1e-7
    assert num_hits(mu) == row["H"]
    law = first_hit_probabilities(np.float64(row["L"]), np.float64(row["I"]), row["n"], row["H"])
    np.testing.assert_allclose(law, row["first"], atol=5.1e-7)
    assert abs(law.sum() - 1) < 1e-12


@pytest.mark.parametrize("row", GOLDEN["after_one_hit"], ids=lambda r: f"{r['n']}-D L{r['L']}")
def test_table_of_beliefs_after_one_hit(x64, row):
    plume, params = isotropic(row)
    middle = row["N"] // 2
    belief, bits, away = believe(plume, params, np.full(row["n"], float(middle)), 1, 4)
    assert abs(bits - row["entropy"]) < 1e-9
    assert abs(away - row["distance"]) < 1e-9
    beside = (middle + 1,) + (middle,) * (row["n"] - 1)
    assert abs(belief[beside] - row["at"]["+"]) < 1e-9
    if row["n"] == 2:
        assert abs(belief[middle + 1, middle + 1] - row["at"]["x"]) < 1e-9
    assert belief[(middle,) * row["n"]] == 0


def test_windy_belief_after_one_hit(x64):
    golden = GOLDEN["windy_after_one_hit"]
    plume, params = CASES["windy-medium-detections"]()
    params = params.replace(law=jax.tree.map(np.float64, params.law))
    belief, bits, away = believe(plume, params, np.asarray(golden["start"], float), 1, 2)
    assert abs(bits - golden["entropy"]) < 1e-9
    assert abs(away - golden["distance"]) < 1e-9
    for x, y, value in golden["at"]:
        assert abs(belief[x, y] - value) < 1e-9


def test_windy_decay_length(x64):
    law = Windy()
    params = jax.tree.map(np.float64, law.default_params())
    near, far = law.rate(jnp.asarray([[0.0, 0.0], [1.0, 9.0]]), params)
    assert abs(8 / np.log(near / far / 9) - GOLDEN["windy_lambda"]) < 1e-12


def test_k0_is_the_bessel_function(x64):
    x = np.geomspace(1e-6, 1e4, 400)
    k0_now = jax.jit(scaled_k0)
    np.testing.assert_allclose(k0_now(x), k0e(x), rtol=2e-12)
    single = k0_now(x.astype(np.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, k0e(x.astype(np.float32)), rtol=3e-6)
    # (e^x K0)' = e^x (K0 - K1), and K1(1) = 0.6019072301972346 (Abramowitz and Stegun, 9.8).
    slope = np.e * (k0(1.0) - 0.6019072301972346)
    assert abs(jax.jit(jax.grad(scaled_k0))(1.0) - slope) < 1e-13


def test_counts_are_poisson_with_the_tail_in_the_last(x64):
    mu = np.asarray([0.0, 0.3, 2.0, 7.5])
    laws = hit_probabilities(jnp.asarray(mu), 4)
    expected = [poisson.pmf(h, mu) for h in range(3)] + [poisson.sf(2, mu)]
    np.testing.assert_allclose(laws, expected, atol=1e-15)


@pytest.mark.parametrize("categories", [2, 5])
def test_small_tails_keep_their_digits_in_single_precision(categories):
    """Where 1 minus the rest were all rounding, or below 0."""
    mu = np.geomspace(1e-4, 60, 300).astype(np.float32)
    last = jax.value_and_grad(lambda mu: hit_probabilities(mu, categories)[-1])
    tail, slope = jax.jit(jax.vmap(last))(mu)
    exact = poisson.sf(categories - 2, mu.astype(float))
    seen = exact > 1e-30
    np.testing.assert_allclose(tail[seen], exact[seen], rtol=3e-6)
    assert np.all(tail >= 0)
    # d P(h >= n) / d mu = P(h = n - 1).
    np.testing.assert_allclose(slope, poisson.pmf(categories - 2, mu.astype(float)), atol=1e-6)


def test_single_precision_believes_what_double_does(x64):
    for hits in (1, 3):
        found = []
        for dtype in (np.float32, np.float64):
            plume, params = CASES["isotropic-53x53"]()
            params = params.replace(law=jax.tree.map(dtype, params.law))
            belief, *about = believe(plume, params, np.full(2, 26, dtype), hits, 4)
            assert belief.dtype == dtype
            found.append(np.asarray(about, float))
        np.testing.assert_allclose(*found, rtol=2e-6)


def test_cosh_is_its_formula_and_no_hit_upwind():
    law = Cosh()
    x, y = np.asarray([[10.0, 10.0, 50.0, -3.0, 0.0], [0.0, 2.0, -5.0, 1.0, 1.0]], np.float32)
    got = law.rate(jnp.stack([jnp.asarray(x), jnp.asarray(y)]), law.default_params())
    np.testing.assert_allclose(got[:3], 1 / np.cosh(y[:3] / (0.2 * x[:3])) ** 2, rtol=1e-5)
    np.testing.assert_array_equal(got[3:], 0)
    np.testing.assert_allclose(law.counts(got, 2).sum(axis=0), 1)
    with pytest.raises(ValidationError, match="categories"):
        law.counts(got, 3)


@pytest.mark.parametrize("name", CASES)
def test_every_case_samples(name):
    plume, params = CASES[name]()
    plume.validate(params)
    source = np.asarray(params.source)
    places = source + np.asarray([[0, 0], [3, 0], [300, 0]], np.float32)
    air = read(plume, params, places)
    assert air.concentration.dtype == jnp.float32
    assert air.concentration[0] == air.concentration[2] == 0 < air.concentration[1]
    # Without a wind of its own a law says so.
    assert bool(air.wind[0, 0] > 0) == name.startswith("windy")


def test_the_cell_of_the_source_and_the_floor_of_the_distance():
    plume, params = CASES["isotropic-19x19"]()
    places = params.source + np.asarray([[0.49, 0], [0.51, 0], [1, 0], [0.51, -0.51]], np.float32)
    inside, *near = np.asarray(read(plume, params, places).concentration)
    assert inside == 0
    assert abs(near[1] - GOLDEN["isotropic"][2]["mu1"]) < 1e-6
    assert near[0] == near[1] == near[2]


def test_sources_add_up_and_move():
    one = EncounterPlume(grid_size=(21, 21))
    two = EncounterPlume(grid_size=(21, 21), num_sources=2, source_motion=Drift())
    places = np.asarray([[8, 8], [3, 4], [12, 9]], np.float32)
    sources = np.asarray([[5, 5], [14, 9]], np.float32)
    apart = []
    for source in sources:
        params = one.default_params().replace(source=source)
        apart.append(read(one, params, places))
    params = two.default_params().replace(source=sources)
    velocity = np.asarray([[0, 0], [1, 0]], np.float32)
    params = params.replace(source_motion=params.source_motion.replace(velocity=velocity))
    two.validate(params)
    both = read(two, params, places).concentration
    np.testing.assert_allclose(both, sum(air.concentration for air in apart), rtol=1e-6)
    moved = two.advance(jax.random.key(1), two.start(jax.random.key(0), params), params)
    np.testing.assert_array_equal(two.sources(moved, params), [[5, 5], [15, 9]])


def test_gradients_by_source_wind_and_range(x64):
    for name in ("isotropic-19x19", "windy-medium-detections", "cosh"):
        plume, params = CASES[name]()
        law = jax.tree.map(np.float64, params.law)

        rate = jax.jit(lambda law, offset, plume=plume: plume.law.rate(offset[:, None], law)[0])
        check_grads(rate, (law, jnp.asarray([4.0, 2.5])), 1, modes=["rev"], rtol=1e-6)
        at_source = jax.jit(jax.grad(rate, argnums=1))(law, jnp.zeros(2))
        assert np.all(np.isfinite(at_source))


def test_no_wind_and_no_emission_are_defined():
    plume, params = CASES["windy-low-detections"]()
    still = params.replace(law=params.law.replace(speed=np.float32(0)))
    plume.validate(still)
    places = np.asarray([[30, 20]], np.float32)
    np.testing.assert_allclose(read(plume, still, places).concentration, [0.025], rtol=1e-6)
    silent = params.replace(law=params.law.replace(rate=np.float32(0)))
    plume.validate(silent)
    assert read(plume, silent, places).concentration[0] == 0


@pytest.mark.parametrize(
    ("plume", "change", "field"),
    [
        (EncounterPlume(), {"wavelength": np.float32(0.5)}, "plume.law.wavelength"),
        (EncounterPlume(), {"rate": np.float32(-1)}, "plume.law.rate"),
        (EncounterPlume(Windy()), {"lifetime": np.float32(0)}, "plume.law.lifetime"),
        (EncounterPlume(Windy()), {"speed": np.float32(np.nan)}, "plume.law.speed"),
        (EncounterPlume(Windy(), (9, 9, 9)), {}, "grid_size"),
        (EncounterPlume(Cosh()), {"width": np.float32(0)}, "plume.law.width"),
        (EncounterPlume(grid_size=(5, 0)), {}, "grid_size"),
    ],
)
def test_bad_numbers_are_refused(plume, change, field):
    params = plume.default_params()
    params = params.replace(law=params.law.replace(**change))
    with pytest.raises(ValidationError, match=field):
        plume.validate(params)


def test_a_source_beyond_the_grid_is_refused():
    plume = EncounterPlume()
    far = plume.default_params().replace(source=np.asarray([60.0, 3.0], np.float32))
    with pytest.raises(ValidationError, match=r"plume\.source"):
        plume.validate(far)
