"""testing: the conformance suite, what every plumejax task holds to, for users' own tasks too.

    from plumejax.testing import check_task

    def test_my_task():
        check_task(*plumejax.make("MyTask-v0"))

`check_task` calls the smaller checks below; each can be called alone, and each raises
`AssertionError` that says what differs. They know nothing of odour: any `Environment` will do.
"""

import copy
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from plumejax.base import lifecycle, paths, spaces
from plumejax.base.batch import RESET, Batch
from plumejax.base.environment import Environment
from plumejax.base.lifecycle import Lifecycle

LANES = 3
RTOL = 1e-5
"""How far floats may differ between two ways to compute the same; all else must be equal."""


class Outcome(NamedTuple):
    """What a step returns."""

    observation: Any
    state: Any
    reward: chex.Array
    terminated: chex.Array
    truncated: chex.Array
    info: dict[str, Any]


class Episode(NamedTuple):
    """A reset and the steps after it; `steps[t]` is what `actions[t]` with `keys[t]` led to."""

    observation: Any
    state: Any
    actions: list[Any]
    keys: list[chex.PRNGKey]
    steps: list[Outcome]


def check_task(
    env: Environment,
    params: Any,
    *,
    key: chex.PRNGKey | None = None,
    steps: int = 8,
    random: bool = True,
    rtol: float = RTOL,
) -> None:
    """Raise `AssertionError` unless the task keeps every promise that a plumejax task makes.

    Args:
      env: the environment.
      params: its numbers.
      key: typed key for resets, steps and random actions; by default `jax.random.key(0)`.
      steps: steps of each random episode, > 0.
      random: False for a task in which nothing is drawn, where all seeds give the same episode.
      rtol: relative (and, near 0, absolute) error allowed to floats between two ways to compute
        the same thing.
    """
    key = jax.random.key(0) if key is None else key
    check_static(env, params)
    check_shapes(env, params, key, steps)
    check_spaces(env, params, key, steps)
    check_finite(env, params, key, steps)
    check_seeds(env, params, key, steps, random=random)
    check_lifecycle(env, params, key)
    check_ending(env, params, key, rtol=rtol)
    check_eager(env, params, key, rtol=rtol)
    check_vmap(env, params, key, rtol=rtol)
    check_scan(env, params, key, steps, rtol=rtol)
    check_traces(env, params, key)
    check_batch(env, params, key, rtol=rtol)
    check_copies(env, params, key)
    check_key_reuse(env, params, key)


def episode(env: Environment, params: Any, key: chex.PRNGKey, steps: int) -> Episode:
    """A reset and `steps` steps of random actions, in a Python loop."""
    reset_key, action_key, step_key = jax.random.split(key, 3)
    space = env.action_space(params)
    actions = [space.sample(k) for k in jax.random.split(action_key, steps)]
    keys = list(jax.random.split(step_key, steps))
    observation, state = env.reset(reset_key, params)
    outcomes, last = [], state
    for k, action in zip(keys, actions, strict=True):
        outcome = Outcome(*env.step(k, last, action, params))
        outcomes.append(outcome)
        last = outcome.state
    return Episode(observation, state, actions, keys, outcomes)


def check_static(env: Environment, params: Any) -> None:
    """`env` is hashable and equal to its copy; every number of `params` has a dtype of its own."""
    twin = copy.deepcopy(env)
    _require(hash(env) == hash(twin) and env == twin, f"{env!r} does not equal its deep copy")
    for path, value in paths.leaves(params).items():
        _require(
            all(hasattr(leaf, "dtype") for leaf in jax.tree.leaves(value)),
            f"params: {path} = {value!r} is a Python number, whose dtype is anybody's guess:"
            " make it np.float32(...) or the like",
        )
    env.validate(params)


def check_shapes(env: Environment, params: Any, key: chex.PRNGKey, steps: int = 8) -> None:
    """Shapes, dtypes and structure are those of the reset after every step, keys are not kept."""
    run = episode(env, params, key, steps)
    for leaf in jax.tree.leaves(run.state):
        _require(
            not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key),
            "the state holds a random key: keep keys out of it, they are handed to every step",
        )
    first = run.steps[0]
    _same_form(run.state.observation, run.observation, "reset: state.observation and observation")
    for t, step in enumerate(run.steps):
        _same_form(step.state, run.state, f"step {t}: the state and that of the reset")
        _same_form(step.observation, run.observation, f"step {t}: observation and the reset's")
        _same_form((step.reward, step.info), (first.reward, first.info), f"step {t}: reward, info")
        for name in ("terminated", "truncated"):
            flag = getattr(step, name)
            _require(flag.shape == () and flag.dtype == bool, f"{name} is not one bool: {flag!r}")
    _require(first.reward.dtype == run.state.total_reward.dtype, "reward is not as total_reward")
    _require(first.reward.shape == run.state.total_reward.shape, "reward is not as total_reward")
    for name in ("lifecycle", "step_count"):
        value = getattr(run.state, name)
        good = value.shape == () and value.dtype == jnp.int32
        _require(good, f"state.{name} is not one int32: {value!r}")


def check_spaces(env: Environment, params: Any, key: chex.PRNGKey, steps: int = 8) -> None:
    """Observations are in their space, and samples of both spaces in theirs."""
    run = episode(env, params, key, steps)
    space, actions = env.observation_space(params), env.action_space(params)
    _require(space.contains(run.observation), f"reset gave {run.observation!r}, not in {space}")
    for t, step in enumerate(run.steps):
        inside = space.contains(step.observation)
        _require(inside, f"step {t} gave {step.observation!r}, not in {space}")
    for name, each in (("action", actions), ("observation", space)):
        sample = each.sample(key)
        _require(each.contains(sample), f"the {name} space holds not its own sample {sample!r}")
    _same_form(space.sample(key), run.observation, "a sample of the space and an observation")


def check_finite(env: Environment, params: Any, key: chex.PRNGKey, steps: int = 8) -> None:
    """No NaN and no infinity in anything that a reset or step returns."""
    run = episode(env, params, key, steps)
    _explain(chex.assert_tree_all_finite, "reset", run.state)
    for t, step in enumerate(run.steps):
        _explain(chex.assert_tree_all_finite, f"step {t}", tuple(step))


def check_seeds(
    env: Environment, params: Any, key: chex.PRNGKey, steps: int = 8, *, random: bool = True
) -> None:
    """The same key gives the same episode, exactly; another key another one (if `random`).

    An environment that says `random_step = False` steps alike under any key.
    """
    run, again = episode(env, params, key, steps), episode(env, params, key, steps)
    _equal((again.state, again.steps), (run.state, run.steps), "two episodes with one key")
    others = [_replay(env, params, k, run.actions) for k in jax.random.split(key, 4)]
    differ = any(not _is_equal(other, others[0]) for other in others)
    _require(
        differ or not random,
        "four keys gave one and the same episode; if nothing is meant to be drawn: random=False",
    )
    _require(random or not differ, "random=False, yet two keys gave two episodes")
    if not env.random_step:
        other = Outcome(*env.step(key, run.state, run.actions[0], params))
        _equal(other, run.steps[0], "random_step is False, yet a step under two keys")


def check_lifecycle(env: Environment, params: Any, key: chex.PRNGKey) -> None:
    """CREATED and CLOSED states are inert, a bad action changes nothing, and `check` says why."""
    _, state = env.reset(key, params)
    space = env.action_space(params)
    action = space.sample(key)
    _check_is(env, state, action, params, 0, "a READY state and an action of the space")
    created, closed = lifecycle.created(state), lifecycle.closed(state)
    _check_is(env, created, action, params, 1, "a CREATED state")
    _check_is(env, closed, action, params, 3, "a CLOSED state")
    _inert(env, created, action, key, params, "a step before the first reset")
    _inert(env, closed, action, key, params, "a step after close")
    bad = _bad_action(space)
    if bad is not None:
        _check_is(env, state, bad, params, 4, f"the action {bad!r}, not in {space},")
        _inert(env, state, bad, key, params, f"a step with the action {bad!r}, not in {space},")


def check_ending(
    env: Environment, params: Any, key: chex.PRNGKey, *, rtol: float = RTOL, max_steps: int = 3
) -> None:
    """Steps are counted, `truncated` is `step_count >= max_steps`, and the end is the end.

    After it the state, the last observation and the flags stay, with reward 0.
    """
    params = params.replace(max_steps=np.int32(max_steps))
    run = episode(env, params, key, max_steps)
    state, total = run.state, jnp.zeros_like(run.state.total_reward)
    _require(int(state.lifecycle) == Lifecycle.READY, "a reset does not leave the state READY")
    _require(int(state.step_count) == 0, "a reset does not set step_count to 0")
    _require(not np.any(state.total_reward), "a reset does not set total_reward to 0")
    for t, step in enumerate(run.steps):
        state, total, count = step.state, total + step.reward, t + 1
        _require(int(state.step_count) == count, f"after {count} steps: {state.step_count=}")
        late = bool(step.truncated) == (count >= max_steps)
        _require(late, f"{max_steps=}, after {count} steps: truncated is {step.truncated}")
        code = lifecycle.after_step(step.terminated, step.truncated)
        _require(state.lifecycle == code, f"{state.lifecycle=} does not fit the flags of {step}")
        _close(state.total_reward, total, "total_reward and the sum of rewards", rtol)
        if step.terminated | step.truncated:
            break
    _check_is(env, state, run.actions[0], params, 2, "an ended episode")
    for k, action in zip(run.keys, run.actions, strict=True):
        _inert(env, state, action, k, params, "a step after the end")
        after = Outcome(*env.step(k, state, action, params))
        _equal(after[3:], step[3:], "flags and info after the end, and of the last step")


def check_eager(env: Environment, params: Any, key: chex.PRNGKey, *, rtol: float = RTOL) -> None:
    """Without `jit` a reset and a step give the same."""
    run = episode(env, params, key, 1)
    reset_key = jax.random.split(key, 3)[0]
    with jax.disable_jit():
        _, state = env.reset(reset_key, params)
        step = Outcome(*env.step(run.keys[0], run.state, run.actions[0], params))
    _close(state, run.state, "a reset without jit, and with it", rtol)
    _close(step, run.steps[0], "a step without jit, and with it", rtol)


def check_vmap(env: Environment, params: Any, key: chex.PRNGKey, *, rtol: float = RTOL) -> None:
    """Under `vmap` over keys, states and actions each lane gives what it gives alone."""
    runs = [episode(env, params, k, 1) for k in jax.random.split(key, LANES)]
    reset_keys = jnp.stack([jax.random.split(k, 3)[0] for k in jax.random.split(key, LANES)])
    observation, state = jax.vmap(env.reset, in_axes=(0, None))(reset_keys, params)
    alone = _stack([(run.observation, run.state) for run in runs])
    _close((observation, state), alone, "resets under vmap, and alone", rtol)
    step = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
        jnp.stack([run.keys[0] for run in runs]),
        _stack([run.state for run in runs]),
        _stack([run.actions[0] for run in runs]),
        params,
    )
    alone = _stack([run.steps[0] for run in runs])
    _close(Outcome(*step), alone, "steps under vmap, and alone", rtol)


def check_scan(
    env: Environment, params: Any, key: chex.PRNGKey, steps: int = 8, *, rtol: float = RTOL
) -> None:
    """An episode in one `lax.scan` is the episode of a Python loop."""
    run = episode(env, params, key, steps)

    def one(state: Any, given: Any) -> tuple[Any, Outcome]:
        outcome = Outcome(*env.step(*given[:1], state, *given[1:], params))
        return outcome.state, outcome

    given = (jnp.stack(run.keys), _stack(run.actions))
    _, scanned = jax.lax.scan(one, run.state, given)
    _close(scanned, _stack(run.steps), "an episode under scan, and in a loop", rtol)


def check_traces(env: Environment, params: Any, key: chex.PRNGKey) -> None:
    """One trace serves every key, action and value of every number, and every equal `env`."""
    run = episode(env, params, key, 2)
    env_twin = pickle.loads(pickle.dumps(env))
    more = jax.tree.map(lambda x: x + np.ones((), x.dtype), params.max_steps)
    params_twin = jax.tree.map(jnp.asarray, params.replace(max_steps=more))
    traced = {"reset": 0, "step": 0}

    def reset(env: Environment, key: chex.PRNGKey, params: Any) -> Any:
        traced["reset"] += 1
        return env.reset(key, params)

    def step(env: Environment, key: chex.PRNGKey, state: Any, action: Any, params: Any) -> Any:
        traced["step"] += 1
        return env.step(key, state, action, params)

    jit_reset, jit_step = jax.jit(reset, static_argnums=0), jax.jit(step, static_argnums=0)
    states = (run.state, run.steps[0].state, run.steps[1].state)
    for e, p, k in ((env, params, key), (env_twin, params_twin, run.keys[0])):
        jit_reset.trace(e, k, p)
        for state in (*states, lifecycle.created(run.state), lifecycle.closed(run.state)):
            jit_step.trace(e, k, state, e.action_space(p).sample(k), p)
    for name, count in traced.items():
        _require(
            count == 1,
            f"{name} was traced {count} times over two keys, two values of max_steps and two equal"
            " environments: look for a dtype or a weak type that changes, or an env compared by id",
        )


def check_batch(env: Environment, params: Any, key: chex.PRNGKey, *, rtol: float = RTOL) -> None:
    """Lane i of a `Batch` is `env` with `fold_in(key, i)`, so the number of lanes changes nothing.

    A lane that ends gives its last observation, and starts afresh with a key of its own.
    """
    params = params.replace(max_steps=np.int32(LANES))
    batch = Batch(env, LANES)
    reset_key, action_key, step_key = jax.random.split(key, 3)
    space = env.action_space(params)
    actions = [space.sample(k) for k in jax.random.split(action_key, LANES)]
    _, state = batch.reset(reset_key, params)
    # The lanes stand at different steps of their episodes, so that the last one ends.
    states = state.replace(step_count=jnp.arange(LANES, dtype=jnp.int32))
    step = Outcome(*batch.step(step_key, states, _stack(actions), params))
    for i, action in enumerate(actions):
        what = f"lane {i} of a batch, and the environment alone:"
        lane, before, got = jax.tree.map(lambda x, i=i: x[i], (state, states, step))
        _, alone = env.reset(jax.random.fold_in(reset_key, i), params)
        _close(lane, alone, f"{what} reset", rtol)
        expected = Outcome(*env.step(jax.random.fold_in(step_key, i), before, action, params))
        info = {**expected.info, "final_observation": expected.observation}
        _close(got[2:], (*expected[2:5], info), f"{what} what a step returns", rtol)
        after = expected.state
        if expected.terminated | expected.truncated:
            _, after = env.reset(jax.random.fold_in(step_key, i + RESET), params)
        _close(got[:2], (after.observation, after), f"{what} where a step leads", rtol)


def check_copies(env: Environment, params: Any, key: chex.PRNGKey) -> None:
    """`env`, `params` and state survive pickle and deepcopy, and go on exactly alike."""
    run = episode(env, params, key, 1)
    for name, twin in (
        ("pickled", lambda x: pickle.loads(pickle.dumps(x))),
        ("deep-copied", copy.deepcopy),
    ):
        env_twin, params_twin, state_twin = twin(env), twin(params), twin(run.state)
        _equal(state_twin, run.state, f"a {name} state and itself")
        step = env_twin.step(run.keys[0], state_twin, run.actions[0], params_twin)
        _equal(Outcome(*step), run.steps[0], f"a step of the {name} task and of itself")


def check_key_reuse(env: Environment, params: Any, key: chex.PRNGKey) -> None:
    """No key is used twice within a reset or a step (`jax.debug_key_reuse`)."""
    run = episode(env, params, key, 1)
    for name, call, args in (
        ("reset", env.reset, (params,)),
        ("step", env.step, (run.state, run.actions[0], params)),
    ):
        with jax.debug_key_reuse(True):
            try:
                jax.jit(lambda key, args, call=call: call(key, *args)).trace(key, args)
            except jax.errors.KeyReuseError as error:
                raise AssertionError(f"{name} uses a key twice: {str(error)[:500]}") from error


def _check_is(env: Environment, state: Any, action: Any, params: Any, code: int, what: str) -> None:
    got = int(env.check(state, action, params))
    _require(got == code, f"check gives {got}, not {code}, for {what}")


def _inert(
    env: Environment, state: Any, action: Any, key: chex.PRNGKey, params: Any, what: str
) -> None:
    step = Outcome(*env.step(key, state, action, params))
    _equal(step.state, state, f"the state after {what} and before it")
    _equal(step.observation, state.observation, f"the observation after {what} and before it")
    _require(not np.any(step.reward), f"{what} pays {step.reward}")
    limit = env.episode_params(state, params).max_steps
    flags = lifecycle.flags(state.lifecycle, state.step_count, limit)
    _equal((step.terminated, step.truncated), flags, f"the flags after {what} and before it")


def _bad_action(space: Any) -> Any:
    """One that the space does not hold but a step can be traced with; None if there is none."""
    if isinstance(space, spaces.Discrete):
        return jnp.int32(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return jnp.asarray(space.nvec, jnp.int32)
    if isinstance(space, spaces.Box) and jnp.issubdtype(space.dtype, jnp.floating):
        return jnp.full(space.shape, jnp.nan, space.dtype)
    return None


def _replay(env: Environment, params: Any, key: chex.PRNGKey, actions: list[Any]) -> list[Any]:
    """The states of an episode with these actions."""
    reset_key, step_key = jax.random.split(key)
    states = [env.reset(reset_key, params)[1]]
    for k, action in zip(jax.random.split(step_key, len(actions)), actions, strict=True):
        states.append(env.step(k, states[-1], action, params)[1])
    return states


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _require(ok: Any, message: str) -> None:
    if not ok:
        raise AssertionError(message)


def _explain(check: Callable[..., None], what: str, *args: Any, **kwargs: Any) -> None:
    """A chex assertion, with what it is about before its message."""
    try:
        check(*args, **kwargs)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from error


def _same_form(a: Any, b: Any, what: str) -> None:
    _explain(chex.assert_trees_all_equal_structs, what, a, b)
    _explain(chex.assert_trees_all_equal_shapes_and_dtypes, what, a, b)


def _equal(a: Any, b: Any, what: str) -> None:
    _same_form(a, b, what)
    _explain(chex.assert_trees_all_equal, what, a, b)


def _is_equal(a: Any, b: Any) -> bool:
    try:
        chex.assert_trees_all_equal(a, b)
    except AssertionError:
        return False
    return True


def _close(a: Any, b: Any, what: str, rtol: float) -> None:
    """Floats to rounding, all else exactly."""
    _same_form(a, b, what)
    floats, rest = (_part(a, True), _part(b, True)), (_part(a, False), _part(b, False))
    _explain(chex.assert_trees_all_equal, what, *rest)
    _explain(chex.assert_trees_all_close, what, *floats, rtol=rtol, atol=rtol)


def _part(tree: Any, floats: bool) -> Any:
    """The tree with its floats alone, or without them."""
    is_float = lambda x: jnp.issubdtype(x.dtype, jnp.floating)  # noqa: E731
    return jax.tree.map(lambda x: x if is_float(x) == floats else None, tree)
