"""tests/learning/test_ppo: PPO as a pure function, its traps, and that it learns."""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.base.spaces import Box
from plumejax.evaluation.episodes import play
from plumejax.learning import ppo as module
from plumejax.learning.curricula import curriculum
from plumejax.learning.networks import forward
from plumejax.learning.ppo import Hyperparameters, Shapes, ppo, train
from plumejax.plumes.interface import Air
from plumejax.search.motion import StepParams
from plumejax.search.rewards import with_progress_reward

TINY = Shapes(num_envs=8, num_steps=8, num_minibatches=2, num_epochs=2, hidden=(8,), units=8)
HYPER = Hyperparameters(updates=4.0)


@pytest.fixture(scope="module", params=["stack", "gru"])
def tiny(request, local):
    """`(algorithm, params, a beginning, its compiled collection)`."""
    env, params = with_progress_reward(*local)
    algorithm = ppo(env, params, replace(TINY, memory=request.param))
    begin = jax.jit(algorithm.init)(jax.random.key(0), params)
    return algorithm, params, begin, jax.jit(algorithm._collect)


@pytest.mark.slow
def test_a_training_is_a_pure_function_that_vmaps_over_seeds_and_rates(local):
    env, params = with_progress_reward(*local)
    algorithm = ppo(env, params, TINY)
    keys = jax.random.split(jax.random.key(3), 2)
    rates = jnp.asarray([1e-3, 1e-2], jnp.float32)
    axes = jax.tree.map(lambda _: None, HYPER).replace(learning_rate=0)
    run = partial(train, algorithm, updates=2)
    both, metrics = jax.jit(jax.vmap(run, in_axes=(0, None, axes)))(
        keys, params, HYPER.replace(learning_rate=rates)
    )
    assert metrics.entropy.shape == (2, 2)
    alone = jax.jit(run)
    for i in range(2):
        hyper = HYPER.replace(learning_rate=rates[i])
        one, again = (alone(keys[i], params, hyper)[0].parameters for _ in range(2))
        for a, b, c in zip(*map(jax.tree.leaves, (one, again, both.parameters)), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, c[i], atol=2e-5)


@pytest.mark.slow
def test_a_training_vmaps_over_optax_schedules(local):
    env, params = with_progress_reward(*local)
    algorithm = ppo(env, params, TINY)
    at = np.linspace(0, 1, 5)

    def follows(schedule):
        rates = [schedule(share * HYPER.updates) for share in at]
        return curriculum(HYPER.replace(anneal=0.0), at, {"learning_rate": rates})

    constant = optax.constant_schedule(1e-3)
    falling = optax.linear_schedule(1e-3, 0.0, int(HYPER.updates))
    schedules = jax.tree.map(lambda *x: np.stack(x), follows(constant), follows(falling))
    run = partial(train, algorithm, jax.random.key(3), params, updates=4)
    both, _ = jax.jit(jax.vmap(lambda hyper: run(hyper=hyper)))(schedules)
    # What falls linearly is what a training does of itself, and a constant rate is not.
    usual, _ = jax.jit(run)(hyper=HYPER.replace(learning_rate=1e-3))
    leaves = map(jax.tree.leaves, (usual.parameters, both.parameters))
    pairs = list(zip(*leaves, strict=True))
    assert all(np.allclose(a, b[1], atol=2e-5) for a, b in pairs)
    assert not all(np.allclose(a, b[0], atol=2e-4) for a, b in pairs)


def test_each_memory_is_told_as_many_steps_as_it_needs(local):
    made = {name: ppo(*local, replace(TINY, memory=name)) for name in ("none", "stack", "gru")}
    stacks = {name: algorithm.encoder.stack for name, algorithm in made.items()}
    assert stacks == {"none": 1, "stack": TINY.stack, "gru": 1}
    recurs = [name for name, each in made.items() if jax.tree.leaves(each.network.blank())]
    assert recurs == ["gru"]


def test_advantages_match_their_definition_and_stop_at_an_end():
    rng = np.random.default_rng(0)
    t, n = 6, 3
    reward, value = rng.normal(size=(2, t, n)).astype(np.float32)
    last = rng.normal(size=n).astype(np.float32)
    done = rng.random((t, n)) < 0.3
    data = module._Data(None, None, None, None, jnp.asarray(value), jnp.asarray(reward), done)
    hyper = Hyperparameters(gamma=jnp.float32(0.9), gae_lambda=jnp.float32(0.8))
    got = module._advantages(data, jnp.asarray(last), hyper)
    want = np.zeros((t, n))
    for lane in range(n):
        for start in range(t):
            weight = 1.0
            for s in range(start, t):
                following = value[s + 1, lane] if s + 1 < t else last[lane]
                ahead = 0.0 if done[s, lane] else following
                want[start, lane] += weight * (reward[s, lane] + 0.9 * ahead - value[s, lane])
                weight *= 0.9 * 0.8
                if done[s, lane]:
                    break
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_truncation_bootstraps_from_the_final_observation_and_blanks_the_memory(tiny):
    algorithm, params, begin, collect = tiny
    # Every episode is cut off after one step, far from the source.
    params = params.replace(
        max_steps=np.int32(1),
        ending=params.ending.replace(radius=np.float32(0.5)),
        start=params.start.replace(min_distance=np.float32(4.0)),
    )
    hyper = jax.tree.map(jnp.float32, HYPER)
    after, _, data, totals, _ = collect(begin, params, hyper)
    assert int(totals.episodes) == TINY.num_envs * TINY.num_steps
    assert np.all(data.done)
    for x, blank in zip(
        jax.tree.leaves((after.memory, after.hidden)),
        jax.tree.leaves((algorithm.encoder.blank(), algorithm.network.blank())),
        strict=True,
    ):
        np.testing.assert_array_equal(x, np.broadcast_to(blank, x.shape))
    # The first step again, by hand, on lane 0.
    encoder, moments = algorithm.encoder, begin.moments
    lanes = (begin.env_state, begin.memory, begin.hidden)
    state, memory, hidden = jax.tree.map(lambda x: x[0], lanes)
    inputs, memory, _ = encoder.encode(moments, memory, state.observation)
    _, _, hidden = forward(algorithm.network, begin.parameters, hidden, inputs)
    action = data.action[0, 0]
    env = algorithm.batch.env
    final, _, reward, _, truncated, _ = env.step(jax.random.key(9), state, action, params)
    assert bool(truncated)
    inputs, _, _ = encoder.encode(moments, encoder.remember(memory, action), final)
    _, value, _ = forward(algorithm.network, begin.parameters, hidden, inputs)
    np.testing.assert_allclose(data.reward[0, 0], reward + hyper.gamma * value, rtol=1e-5)


def test_a_terminated_episode_is_not_bootstrapped(tiny):
    _, params, begin, collect = tiny
    # From on the source, every first move ends in the disc.
    hyper = jax.tree.map(jnp.float32, HYPER)
    found = jax.vmap(lambda s: s.replace(agent=s.agent.replace(position=s.plume)))
    begin = begin._replace(env_state=found(begin.env_state))
    _, _, data, _, _ = collect(begin, params, hyper)
    own = params.reward
    assert np.all(data.done[0])
    # One cell away from the source and found: goal, a cell lost, the step's penalty; no value.
    np.testing.assert_allclose(data.reward[0], own.goal - own.per_cell - own.penalty, rtol=1e-5)


@pytest.mark.slow
def test_it_learns_to_find_the_source(local):
    env, params = with_progress_reward(*local)
    algorithm = ppo(env, params, Shapes(num_envs=128, num_steps=32, hidden=(32, 32)))
    hyper = Hyperparameters(updates=30.0)
    before = algorithm.agent(jax.jit(algorithm.init)(jax.random.key(0), params))
    trained, _ = jax.jit(partial(train, algorithm, params=params, updates=30))(
        key=jax.random.key(0), hyper=hyper
    )
    env, params = local
    key = jax.random.key(1)
    untrained = play(env, before, key, params, 256)
    outcomes = play(env, algorithm.agent(trained), key, params, 256)
    assert float(outcomes.found.mean()) > 0.95
    assert float(outcomes.found.mean()) > float(untrained.found.mean()) + 0.3


@dataclass(frozen=True)
class Glide:
    """A user's own continuous motion: a velocity in cells a step."""

    random_step = False

    def default_params(self):
        return StepParams(step=np.float32(1.0))

    def space(self, params):
        return Box(-1.0, 1.0, (2,))

    def move(self, key, agent, action, air, arena, params):
        target = agent.position + action * params.motion.step
        return agent.replace(position=arena.settle(agent.position, target, params))

    def mask(self, agent, arena, params):
        return jnp.ones(2, bool)


def test_a_continuous_motion_of_ones_own_trains():
    env, params = plumejax.make("PlumeSearchLocal-v0", grid_size=(16, 12), motion=Glide())
    env, params = with_progress_reward(env, params)
    algorithm = ppo(env, params, TINY)
    first = jax.jit(algorithm.init)(jax.random.key(0), params)
    last, metrics = jax.jit(partial(train, algorithm, params=params, updates=2))(
        key=jax.random.key(0), hyper=HYPER
    )
    assert np.all(np.isfinite(jax.tree.leaves(metrics)[-1]))
    changed = [
        not np.array_equal(a, b)
        for a, b in zip(
            jax.tree.leaves(first.parameters), jax.tree.leaves(last.parameters), strict=True
        )
    ]
    assert any(changed)
    # Wide actions are clipped, or the core would refuse them and nothing would move.
    agent = algorithm.agent(last)
    carry = agent.init(jax.random.key(0))
    action, _ = agent.act(jax.random.key(1), carry, jnp.zeros(1, jnp.float32))
    assert bool(env.action_space(params).contains(action))


@dataclass(frozen=True)
class Cone:
    """A user's own plume: 1 at the source, falling to 0 within `reach` cells, no wind."""

    random_start = random_step = False

    def default_params(self):
        return {"source": np.asarray([8.0, 6.0], np.float32), "reach": np.float32(20.0)}

    def start(self, key, params):
        return jnp.asarray(params["source"])[None]

    def advance(self, key, state, params):
        return state

    def sample(self, state, positions, params):
        distance = jnp.linalg.norm(positions - state, axis=-1)
        gas = jnp.maximum(1 - distance / params["reach"], 0.0)
        return Air(gas, jnp.zeros_like(positions))

    def sources(self, state, params):
        return state


@dataclass(frozen=True)
class Whiskers:
    """A user's own sensor: what it smells ahead and to the left, less what it smells here."""

    random_step = False

    def default_params(self):
        return {"gain": np.float32(20.0)}

    def start(self, params):
        return ()

    def probes(self, agent, params):
        return agent.position[None] + np.asarray([[0, 0], [1, 0], [0, 1]], np.float32)

    def observe(self, key, state, scene, params):
        here, ahead, left = scene.air.concentration
        return params.sensor["gain"] * jnp.stack([ahead - here, left - here]), state

    def space(self, params):
        return Box(-params.sensor["gain"], params.sensor["gain"], (2,))


@pytest.mark.slow
def test_a_search_of_ones_own_parts_is_learned():
    parts = {"plume": Cone(), "sensor": Whiskers(), "motion": Glide()}
    numbers = {"ending.radius": 1.5, "max_steps": 40}
    task = plumejax.make("PlumeSearchLocal-v0", grid_size=(16, 12), overrides=numbers, **parts)
    env, params = with_progress_reward(*task)
    algorithm = ppo(env, params, Shapes(num_envs=128, num_steps=32, hidden=(32, 32)))
    hyper = Hyperparameters(updates=20.0)
    before = algorithm.agent(jax.jit(algorithm.init)(jax.random.key(0), params))
    trained, _ = jax.jit(partial(train, algorithm, params=params, updates=20))(
        key=jax.random.key(0), hyper=hyper
    )
    untrained = play(task[0], before, jax.random.key(1), task[1], 128)
    outcomes = play(task[0], algorithm.agent(trained), jax.random.key(1), task[1], 128)
    assert float(outcomes.found.mean()) > 0.9
    assert float(outcomes.found.mean()) > float(untrained.found.mean()) + 0.3


@pytest.mark.parametrize(
    ("field", "value"), [("num_envs", 0), ("num_minibatches", 3), ("memory", "gur"), ("floor", 0.0)]
)
def test_shapes_that_do_not_fit_are_refused(field, value):
    with pytest.raises(ValidationError, match=field):
        replace(Shapes(), **{field: value})
