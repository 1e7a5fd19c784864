"""tests/search/test_bouts: saccades and stops, sniffs in the air, and declarations."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from plumejax.base.errors import ValidationError
from plumejax.plumes.interface import Air
from plumejax.search.arena import BoxParams, OpenBox, OpenGrid, from_map
from plumejax.search.bouts import Declare, Saccades, SniffOrMove
from plumejax.search.motion import NINE, Moves, Oriented, RunAndTumble, WindRelative
from plumejax.search.state import Agent
from plumejax.search.walking import Velocity

KEY = jax.random.key(0)
GRID = OpenGrid((16, 12))


@pytest.fixture(scope="module")
def fly(local):
    """Params of a fly in an arena of 2 x 2 m, in mm, at the frames of Demir et al."""
    side = np.full(2, 1000.0, np.float32)
    own = Saccades().default_params()
    return local[1].replace(motion=own, arena=BoxParams(-side, side), dt=np.float32(1 / 89.94))


def flies(params, action, n=4000, heading=90.0):
    """n agents after one step of `Saccades`, all from the same place."""
    motion = Saccades()
    here = motion.begin(Agent(jnp.zeros(2, jnp.float32), jnp.float32(heading)), params)
    keys = jax.random.split(KEY, n)
    move = jax.jit(
        jax.vmap(lambda key: motion.move(key, here, jnp.int32(action), None, OpenBox(2), params))
    )
    return jax.tree.map(np.asarray, move(keys))


@pytest.mark.parametrize(
    ("action", "mean", "spread"), [(0, 0, 0.2224), (1, 30, 8.003), (2, -30, 8.003)]
)
def test_saccades_are_of_30_and_8_degrees_at_10_mm_a_second(fly, action, mean, spread):
    moved = flies(fly, action)
    turned = moved.heading - 90.0
    # Five standard errors of a mean and of a standard deviation of 4000.
    assert abs(turned.mean() - mean) < 5 * spread / np.sqrt(4000)
    assert abs(turned.std() / spread - 1) < 5 / np.sqrt(2 * 4000)
    angle = np.deg2rad(moved.heading)
    way = 10.1 / 89.94 * np.stack([np.cos(angle), np.sin(angle)], -1)
    np.testing.assert_allclose(moved.position, way, rtol=1e-4, atol=1e-6)


def test_who_stands_still_neither_moves_nor_turns(fly):
    moved = flies(fly, 3, n=8)
    np.testing.assert_array_equal(moved.position, np.zeros((8, 2)))
    np.testing.assert_array_equal(moved.heading, np.full(8, 90.0))
    np.testing.assert_array_equal(moved.motion.velocity, np.zeros((8, 2)))


def test_the_heading_diffuses_the_same_however_fine_the_steps(fly):
    motion = Saccades()

    @jax.jit
    @jax.vmap
    def half_second(key):
        def step(agent, key):
            return motion.move(key, agent, jnp.int32(0), None, OpenBox(2), fine), None

        here = motion.begin(Agent(jnp.zeros(2, jnp.float32), jnp.float32(180.0)), fine)
        return jax.lax.scan(step, here, jax.random.split(key, 50))[0].heading

    fine = fly.replace(dt=np.float32(0.01))
    spread = np.asarray(half_second(jax.random.split(KEY, 4000))).std()
    assert abs(spread / (20 / np.sqrt(89.94) * np.sqrt(0.5)) - 1) < 5 / np.sqrt(2 * 4000)


def test_a_fly_at_a_wall_may_do_all_but_walk_straight_on(fly):
    motion, arena = Saccades(), OpenBox(2)
    for x, straight in ((999.95, False), (0.0, True)):
        here = Agent(jnp.asarray([x, 0], jnp.float32), jnp.float32(0.0))
        np.testing.assert_array_equal(motion.mask(here, arena, fly), [straight, True, True, True])
    assert motion.random_step


@pytest.mark.parametrize("name", ["speed", "turn", "turn_spread", "heading_noise"])
def test_saccades_that_cannot_be_are_refused(fly, name):
    Saccades().validate(fly)
    with pytest.raises(ValidationError, match=f"motion.{name}"):
        Saccades().validate(fly.replace(motion=fly.motion.replace(**{name: np.float32(-1.0)})))


def wrapped(local, motion):
    return local[1].replace(motion=motion.default_params())


def start(motion, params, x=5.0, y=6.0):
    return motion.begin(Agent(jnp.asarray([x, y], jnp.float32), jnp.float32(0.0)), params)


def act(motion, params, agent, *actions, arena=GRID):
    for action in actions:
        agent = motion.move(KEY, agent, jnp.int32(action), None, arena, params)
    return agent


@pytest.mark.parametrize("of", [Moves(), Moves(NINE), Oriented()], ids=str)
def test_a_declaration_is_one_more_action_that_does_not_move(local, of):
    motion = Declare(of)
    params, inner = wrapped(local, motion), wrapped(local, of)
    n = of.space(inner).n
    assert motion.space(params).n == n + 1
    here = start(motion, params)
    assert not here.motion.declared
    for action in range(n):
        moved, alone = act(motion, params, here, action), act(of, inner, start(of, inner), action)
        np.testing.assert_array_equal(moved.position, alone.position)
        assert moved.heading == alone.heading
        assert not moved.motion.declared
    said = act(motion, params, here, n)
    np.testing.assert_array_equal(said.position, here.position)
    assert said.motion.declared
    assert act(motion, params, said, 0).motion.declared


def test_a_declaration_ends_nothing_but_is_kept_through_an_episode(local):
    env = replace(local[0], motion=Declare(Moves()))
    params = wrapped(local, env.motion)
    env.validate(params)
    assert env.num_actions == 5
    assert not env.random_step
    _, state = env.reset(KEY, params)
    for action, declared in ((0, False), (4, True), (1, True)):
        _, state, *_ = env.step(KEY, state, jnp.int32(action), params)
        assert state.agent.motion.declared == declared


def test_one_more_action_is_never_barred(local):
    arena, numbers = from_map("...\n.#.\n...")
    for motion in (Declare(Moves(NINE)), SniffOrMove(Moves(NINE))):
        params = wrapped(local, motion).replace(arena=numbers)
        inner = wrapped(local, Moves(NINE)).replace(arena=numbers)
        for place in ((0.0, 0.0), (1.0, 0.0)):
            mask = motion.mask(start(motion, params, *place), arena, params)
            alone = Moves(NINE).mask(start(Moves(NINE), inner, *place), arena, inner)
            np.testing.assert_array_equal(mask, [*alone, True])


def test_a_sniff_lifts_the_nose_and_costs_the_step(local):
    motion = SniffOrMove(Moves())
    params = wrapped(local, motion)
    params = params.replace(motion=params.motion.replace(low=np.float32(0.1), high=np.float32(2.5)))
    here = start(motion, params)
    np.testing.assert_array_equal(here.position, np.float32([5, 6, 0.1]))
    for actions, place, sniffing in (
        ((0,), (5, 7, 0.1), False),
        ((4,), (5, 6, 2.5), True),
        ((4, 4), (5, 6, 2.5), True),
        ((4, 1), (6, 6, 0.1), False),
    ):
        agent = act(motion, params, here, *actions)
        np.testing.assert_array_equal(agent.position, np.float32(place))
        assert agent.motion.sniffing == sniffing
        assert agent.position.dtype == jnp.float32


class HeightParams(struct.PyTreeNode):
    """A `Height` has no numbers."""


@dataclass(frozen=True)
class Height:
    """A plume whose concentration is the height, in a wind along +y."""

    random_step = False

    def default_params(self):
        return HeightParams()

    def start(self, key, params):
        return ()

    def advance(self, key, state, params):
        return state

    def sample(self, state, positions, params):
        wind = jnp.broadcast_to(jnp.asarray([[0.0, 1.0, 0.0]]), positions.shape)
        return Air(concentration=positions[:, 2], wind=wind)

    def sources(self, state, params):
        return jnp.asarray([[9.0, 9.0]])


def test_the_sensor_smells_at_the_height_of_the_nose(local):
    motion = SniffOrMove(Declare(WindRelative()))
    env = replace(local[0], plume=Height(), motion=motion)
    params = env.default_params()
    params = params.replace(sensor=params.sensor.replace(saturation=np.float32(9.0)))
    env.validate(params)
    _, state = env.reset(jax.random.key(3), params)
    place = np.array(state.agent.position)
    assert place.shape == (3,)
    smelled = []
    # Downwind is up; sniff; declare; downwind.
    for action, way, declared in ((1, 1, False), (5, 0, False), (4, 0, True), (1, 1, True)):
        observation, state, *_ = env.step(KEY, state, jnp.int32(action), params)
        place[1] = min(place[1] + way, 11)
        np.testing.assert_array_equal(state.agent.position[:2], place[:2])
        assert state.agent.motion.declared == declared
        smelled.append(float(observation[0]))
    assert smelled == [0.0, 1.0, 0.0, 0.0]


def test_wrappers_pass_on_what_the_motion_keeps(local):
    motion = Declare(SniffOrMove(Moves(at_wall="end")))
    params = wrapped(local, motion)
    here = start(motion, params, 0.0, 6.0)
    assert not here.motion.touched
    hit = act(motion, params, here, 3)
    assert hit.motion.touched
    assert act(motion, params, here, 4).motion.sniffing
    assert act(motion, params, here, 5).motion.declared
    other = SniffOrMove(Declare(Moves(at_wall="end")))
    params = wrapped(local, other)
    assert act(other, params, start(other, params, 0.0, 6.0), 3).motion.touched
    assert act(other, params, start(other, params), 4).motion.declared


def test_wrappers_draw_and_feel_only_what_the_motion_does():
    for kind in (Declare, SniffOrMove):
        assert kind(RunAndTumble()).random_step
        assert not kind(Moves()).random_step
        assert not kind(Moves()).feels_air
        assert kind(WindRelative()).feels_air
        assert kind(Moves()) == kind(Moves())
        assert hash(kind(Moves())) == hash(kind(Moves()))


def test_wrappers_refuse_what_cannot_be(local):
    for kind in (Declare, SniffOrMove):
        with pytest.raises(ValidationError, match=r"motion.of.*discrete"):
            kind(Velocity(2)).validate(wrapped(local, kind(Velocity(2))))
        params = wrapped(local, kind(Moves()))
        kind(Moves()).validate(params)
        bad = params.motion.of.replace(step=np.float32(0.5))
        with pytest.raises(ValidationError, match=r"motion\.of\.step.*whole"):
            kind(Moves()).validate(params.replace(motion=params.motion.replace(of=bad)))
    low = params.motion.replace(high=np.float32(0.0))
    with pytest.raises(ValidationError, match=r"motion.high.*motion.low"):
        SniffOrMove(Moves()).validate(params.replace(motion=low))


def test_lanes_act_as_one_alone_would(local):
    motion = Declare(SniffOrMove(RunAndTumble()))
    params = wrapped(local, motion)
    rng = np.random.default_rng(2)
    places = rng.integers(0, 12, (12, 2)).astype(np.float32)
    actions = np.tile(np.arange(4, dtype=np.int32), 3)
    keys = jax.random.split(KEY, 12)

    def one(place, action, key):
        agent = motion.begin(Agent(place, jnp.float32(90.0)), params)
        return motion.move(key, agent, action, None, GRID, params)

    alone = jax.jit(one)
    together = jax.jit(jax.vmap(one))(places, actions, keys)
    for i in range(12):
        for got, want in zip(
            jax.tree.leaves(together),
            jax.tree.leaves(alone(places[i], actions[i], keys[i])),
            strict=True,
        ):
            np.testing.assert_allclose(got[i], want, rtol=1e-6)
