"""tests/sweeps/test_trainings: hyperparameters and seeds of PPO as a sweep."""

import jax
import numpy as np
import pytest
import xarray

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.evaluation.episodes import stream
from plumejax.evaluation.trials import evaluation_key
from plumejax.learning.ppo import Hyperparameters, train
from plumejax.learning.runs import make_training
from plumejax.sweeps import best
from plumejax.sweeps.chunks import Chunk

TASK = "PlumeSearchLocal-v0"
SHAPES = {"num_envs": 16, "num_steps": 8, "hidden": (8,), "num_epochs": 1}
NEAR = {"max_steps": 100, "ending.radius": 30}
SIZES = {"seeds": 2, "steps": 640, "episodes": 16, "shapes": SHAPES, "overrides": NEAR}


def made(axes, **more):
    return plumejax.TrainingSweep(TASK, axes, **{**SIZES, **more})


@pytest.fixture(scope="module")
def sweep():
    return made({"learning_rate": [1e-3, 3e-2], "gamma": [0.9, 0.99]}, seed=3)


@pytest.fixture(scope="module")
def trained(sweep, run):
    return run(sweep)


def test_axes_are_hyperparameters_and_then_seeds(trained):
    assert trained.success.dims == ("learning_rate", "gamma", "seed")
    assert trained.seed.values.tolist() == [3, 4]
    assert "discount a step" in trained.gamma.attrs["long_name"]
    assert np.all(trained.done == 1)
    assert len(np.unique(trained.restricted_mean)) > 4


def test_a_cell_is_the_training_of_its_hyperparameters_and_seed(sweep, trained):
    algorithm, params = make_training(sweep.config)
    updates = sweep.config.updates
    hyper = sweep.config.hyperparameters.replace(learning_rate=3e-2, gamma=0.9)
    assert updates == 5
    run = jax.jit(train, static_argnums=0, static_argnames="updates")
    training, _ = run(algorithm, jax.random.key(4), params=params, hyper=hyper, updates=updates)
    env, numbers = plumejax.make(TASK, overrides=NEAR)
    # The cell before the last but one: of 4 settings with 2 seeds.
    key = jax.random.fold_in(evaluation_key(3), 5)
    alone = stream(env, algorithm.agent(training), key, numbers, 16)
    cell = trained.sel(learning_rate=3e-2, gamma=0.9, seed=4)
    np.testing.assert_allclose(cell.mean_return, alone.reward.mean(), rtol=1e-5)
    np.testing.assert_allclose(cell.median_steps, np.median(alone.steps))


def test_the_parts_in_which_it_is_trained_change_nothing(sweep):
    whole = sweep.play(Chunk(0, 0, 3, 4))
    parts = [sweep.play(Chunk(0, first, 1, 1)) for first in range(3)]
    for name, values in whole.items():
        apart = np.concatenate([part[name] for part in parts])
        np.testing.assert_allclose(values, apart, rtol=1e-5, err_msg=name)


def test_what_diverged_is_nan_and_no_best(run):
    data = run(made({"learning_rate": [1e-3, 1e30]}, seeds=1))
    assert np.isnan(data.success).values.ravel().tolist() == [False, True]
    assert best(data).setting == {"learning_rate": pytest.approx(1e-3)}


def test_a_device_short_of_memory_trains_half_of_them_at_a_time(sweep, monkeypatch):
    from plumejax.sweeps import trainings as module

    whole, told, go_on = sweep.play(Chunk(0, 0, 2, 2)), [], module._go_on

    def short(algorithm, training, *rest):
        if len(training.update) > 1:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: as a device says it")
        return go_on(algorithm, training, *rest)

    monkeypatch.setattr(module, "_go_on", short)
    parts = sweep.play(Chunk(0, 0, 2, 2), told.append)
    assert sum(told) == sweep.work(Chunk(0, 0, 2, 2))
    for name, values in whole.items():
        np.testing.assert_allclose(values, parts[name], rtol=1e-5, err_msg=name)


def test_a_stopped_sweep_goes_on(tmp_path, run, sweep, trained):
    class StopError(Exception):
        pass

    def stop(done):
        calls.append(done)
        if len(calls) == 2:
            raise StopError

    calls, store = [], tmp_path / "a.zarr"
    with pytest.raises(StopError):
        sweep.run(store, progress=stop)
    told = []
    data = sweep.run(store, progress=told.append)
    assert sum(told) == sweep.work(sweep.chunks[1])  # the first half is there
    for name in trained.data_vars:
        np.testing.assert_allclose(data[name], trained[name], rtol=1e-5)
    with pytest.raises(ValidationError, match="holds another sweep: its training is"):
        made({"learning_rate": [1e-3, 3e-2], "gamma": [0.9, 0.99]}, seed=3, steps=6400).run(store)


def test_the_best_has_the_greatest_median_over_its_seeds():
    success = [[0.9, 0.1, 0.2], [0.5, 0.4, 0.3], [0.4, 0.4, 0.5]]
    coordinates = {"entropy": [0.1, 0.2, 0.3], "seed": [0, 1, 2]}
    data = xarray.Dataset({"success": (("entropy", "seed"), success)}, coordinates)
    assert best(data) == ({"entropy": 0.3}, 0.4, 0.4, 0.5)  # the mean decides between equals
    cells = {"entropy": ("cell", [0.1, 0.2, 0.3]), "seed": [0, 1, 2]}
    listed = xarray.Dataset({"success": (("cell", "seed"), success)}, cells)
    assert best(listed) == best(data)


def test_a_sweep_without_trainings_has_no_best():
    plain = xarray.Dataset({"success": ("plume.sigma", [0.1, 0.2])})
    with pytest.raises(ValidationError, match="what TrainingSweep"):
        best(plain)


@pytest.mark.parametrize(
    ("axes", "more", "message"),
    [
        ({"entropi": [0.1]}, {}, "entropi: no such number. Did you mean 'entropy'"),
        ({"gamma": [0.9, 1.5]}, {}, r'in the cell {"gamma": 1.5, "seed": 0}: gamma = 1.5'),
        ({"gamma": []}, {}, "gamma = .* at least one value"),
        ({"gamma": [float("nan")]}, {}, "gamma = .* finite"),
        ({"gamma": [0.9]}, {"seeds": 0}, "seeds = 0 .* an int > 0"),
        ({"gamma": [0.9]}, {"hyperparameters": {"gamma": 0.8}}, "hyperparameters = .'gamma'."),
        ({"seed": [1]}, {}, "give seeds"),
        ({"gamma": [0.9]}, {"shapes": {"lanes": 8}}, "shapes lanes: no such number"),
        ({"gamma": [0.9]}, {"overrides": {"max_step": 8}}, "^'max_step'"),
        ({"gamma": [0.9]}, {"shapes": {"hidden": -4}}, "hidden = -4 .* a tuple of ints"),
        ({"gamma": [0.9]}, {"shapes": {"floor": "x"}}, "floor = 'x' .* a number"),
        ({"gamma": [0.9]}, {"hyperparameters": 3}, "hyperparameters = 3 .* a table"),
        ({"gamma": [0.9]}, {"seed": "a"}, "seed = 'a' .* an int from 0"),
    ],
)
def test_what_cannot_be_swept_is_refused_at_once(axes, more, message):
    with pytest.raises(ValidationError, match=message):
        made(axes, **more)


def test_the_hyperparameters_that_are_not_swept_are_the_tasks(sweep):
    assert sweep.config.hyperparameters.entropy == Hyperparameters().entropy
