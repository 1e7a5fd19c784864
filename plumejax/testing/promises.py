"""testing/promises: what holds of any episode: forms, spaces, finite numbers, seeds, copies."""

import copy
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp

from plumejax.base import paths
from plumejax.base.environment import Environment
from plumejax.testing.episodes import Episode, Outcome, episode
from plumejax.testing.forms import equal, explain, is_equal, require_that, same_form


def check_static(env: Environment, params: Any) -> None:
    """`env` is hashable and equal to its copy; every number of `params` has a dtype of its own."""
    twin = copy.deepcopy(env)
    for name, part in vars(env).items():
        require_that(
            part == getattr(twin, name),
            f"{name} = {part!r} does not equal its deep copy: make it a frozen dataclass, or give"
            " it __eq__ and __hash__",
        )
    require_that(hash(env) == hash(twin) and env == twin, f"{env!r} does not equal its deep copy")
    for path, value in paths.leaves(params).items():
        require_that(
            all(hasattr(leaf, "dtype") for leaf in jax.tree.leaves(value)),
            f"params: {path} = {value!r} is a Python number, whose dtype is anybody's guess:"
            " make it np.float32(...) or the like",
        )
    env.validate(params)


def check_calls(env: Environment, params: Any, key: chex.PRNGKey) -> None:
    """`reset` gives an observation and a state, and `step` its six; both can be traced."""
    _, state = _traced("reset", 2, env.reset, key, params)
    action = env.action_space(params).sample(key)
    _traced("step", 6, env.step, key, state, action, params)


def check_shapes(
    env: Environment, params: Any, key: chex.PRNGKey, steps: int = 8, *, run: Episode | None = None
) -> None:
    """Shapes, dtypes and structure are those of the reset after every step, keys are not kept.

    `run`, here and below, is the `episode` of this key, if it is there already.
    """
    run = run or episode(env, params, key, steps)
    for leaf in jax.tree.leaves(run.state):
        require_that(
            not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key),
            "the state holds a random key: keep keys out of it, they are handed to every step",
        )
    first = run.steps[0]
    same_form(run.state.observation, run.observation, "reset: state.observation and observation")
    for t, step in enumerate(run.steps):
        same_form(step.state, run.state, f"step {t}: the state and that of the reset")
        same_form(step.observation, run.observation, f"step {t}: observation and the reset's")
        same_form((step.reward, step.info), (first.reward, first.info), f"step {t}: reward, info")
        for name in ("terminated", "truncated"):
            flag = getattr(step, name)
            good = flag.shape == () and flag.dtype == bool
            require_that(good, f"{name} is not one bool: {flag!r}")
    total = run.state.total_reward
    require_that(first.reward.dtype == total.dtype, "reward is not as total_reward")
    require_that(first.reward.shape == total.shape, "reward is not as total_reward")
    for name in ("lifecycle", "step_count"):
        value = getattr(run.state, name)
        good = value.shape == () and value.dtype == jnp.int32
        require_that(good, f"state.{name} is not one int32: {value!r}")


def check_spaces(
    env: Environment, params: Any, key: chex.PRNGKey, steps: int = 8, *, run: Episode | None = None
) -> None:
    """Observations are in their space, and samples of both spaces in theirs."""
    run = run or episode(env, params, key, steps)
    space, actions = env.observation_space(params), env.action_space(params)
    inside = space.contains(run.observation)
    require_that(inside, f"reset gave {run.observation!r}, not in {space}")
    for t, step in enumerate(run.steps):
        inside = space.contains(step.observation)
        require_that(inside, f"step {t} gave {step.observation!r}, not in {space}")
    for name, each in (("action", actions), ("observation", space)):
        sample = each.sample(key)
        inside = each.contains(sample)
        require_that(inside, f"the {name} space holds not its own sample {sample!r}")
    same_form(space.sample(key), run.observation, "a sample of the space and an observation")


def check_finite(
    env: Environment, params: Any, key: chex.PRNGKey, steps: int = 8, *, run: Episode | None = None
) -> None:
    """No NaN and no infinity in anything that a reset or step returns."""
    run = run or episode(env, params, key, steps)
    explain(chex.assert_tree_all_finite, "reset", run.state)
    for t, step in enumerate(run.steps):
        explain(chex.assert_tree_all_finite, f"step {t}", tuple(step))


def check_seeds(
    env: Environment,
    params: Any,
    key: chex.PRNGKey,
    steps: int = 8,
    *,
    random: bool = True,
    run: Episode | None = None,
) -> None:
    """The same key gives the same episode, exactly; another key another one (if `random`).

    An environment that says `random_step = False` steps alike under any key.
    """
    run, again = run or episode(env, params, key, steps), episode(env, params, key, steps)
    equal((again.state, again.steps), (run.state, run.steps), "two episodes with one key")
    states = [run.state, *(step.state for step in run.steps)]
    others = (_replay(env, params, k, run.actions) for k in jax.random.split(key, 3))
    differ = not all(is_equal(other, states) for other in others)
    require_that(
        differ or not random,
        "four keys gave one and the same episode; if nothing is meant to be drawn: random=False",
    )
    require_that(random or not differ, "random=False, yet two keys gave two episodes")
    if not env.random_step:
        other = Outcome(*env.step(key, run.state, run.actions[0], params))
        equal(other, run.steps[0], "random_step is False, yet a step under two keys")


def check_copies(
    env: Environment, params: Any, key: chex.PRNGKey, *, run: Episode | None = None
) -> None:
    """`env`, `params` and state survive pickle and deepcopy, and go on exactly alike."""
    run = run or episode(env, params, key, 1)
    for name, twin in (
        ("pickled", lambda x: pickle.loads(pickle.dumps(x))),
        ("deep-copied", copy.deepcopy),
    ):
        env_twin, params_twin, state_twin = twin(env), twin(params), twin(run.state)
        equal(state_twin, run.state, f"a {name} state and itself")
        step = env_twin.step(run.keys[0], state_twin, run.actions[0], params_twin)
        equal(Outcome(*step), run.steps[0], f"a step of the {name} task and of itself")


def check_key_reuse(
    env: Environment, params: Any, key: chex.PRNGKey, *, run: Episode | None = None
) -> None:
    """No key is used twice within a reset or a step (`jax.debug_key_reuse`)."""
    run = run or episode(env, params, key, 1)
    for name, call, args in (
        ("reset", env.reset, (params,)),
        ("step", env.step, (run.state, run.actions[0], params)),
    ):
        with jax.debug_key_reuse(True):
            try:
                jax.jit(lambda key, args, call=call: call(key, *args)).trace(key, args)
            except jax.errors.KeyReuseError as error:
                raise AssertionError(f"{name} uses a key twice: {str(error)[:500]}") from error


def _traced(name: str, length: int, call: Callable[..., Any], *args: Any) -> Any:
    """The shapes of what `call` gives; what goes wrong in it is told with the line of the task."""
    try:
        given = jax.eval_shape(call, *args)
    except Exception as error:
        lines = traceback.extract_tb(error.__traceback__)
        own = [at for at in lines if not _is_library(at.filename)][-1]
        raise AssertionError(
            f"{name} cannot be traced: `{own.line}` in {own.name}: {type(error).__name__}: {error}"
        ) from error
    good = isinstance(given, tuple) and len(given) == length
    require_that(good, f"{name} gave {given!r}, not a tuple of {length}")
    return given


def _is_library(path: str) -> bool:
    """Whether a line is of what tasks are written with, and not of a task."""
    return any(f"/site-packages/{name}/" in path for name in ("jax", "flax", "chex", "numpy"))


def _replay(env: Environment, params: Any, key: chex.PRNGKey, actions: list[Any]) -> list[Any]:
    """The states of an episode with these actions."""
    reset_key, step_key = jax.random.split(key)
    states = [env.reset(reset_key, params)[1]]
    for k, action in zip(jax.random.split(step_key, len(actions)), actions, strict=True):
        states.append(env.step(k, states[-1], action, params)[1])
    return states
