"""tests/sweeps/test_sweep: every cell is what it would be alone, and all are one program."""

import os
import subprocess
import sys
from dataclasses import fields

import jax
import numpy as np
import pytest

import plumejax
from plumejax.base.errors import ValidationError
from plumejax.base.paths import override
from plumejax.evaluation import lanes
from plumejax.evaluation.episodes import stream
from plumejax.evaluation.statistics import Summary, summarise
from plumejax.evaluation.trials import evaluation_key
from plumejax.policies.catalogue import prepare
from plumejax.sweeps import chunks as module
from plumejax.sweeps.chunks import Chunk, chunks
from plumejax.sweeps.designs import listed, sobol


def test_a_cell_is_what_it_is_alone(sweep, played):
    made = plumejax.make("PlumeSearchLocal-v0", overrides=sweep.overrides, **sweep.static)
    env, params, policy = prepare("gradient", *made)
    for number, (sigma, radius) in enumerate([(s, r) for s in (1, 4, 16) for r in (1.5, 3.0)]):
        own = override(params, {"plume.sigma": sigma, "ending.radius": radius})
        key = jax.random.fold_in(evaluation_key(5), number)
        alone = summarise(stream(env, policy, key, own, 24), radius)
        cell = played.sel({"plume.sigma": sigma, "ending.radius": radius})
        for field in fields(Summary)[1:]:
            value, there = getattr(alone, field.name), float(cell[field.name])
            np.testing.assert_allclose(there, value, rtol=1e-6, err_msg=field.name)


def test_the_result_has_labelled_axes_with_units(played):
    assert played.success.dims == ("plume.sigma", "ending.radius")
    assert played["plume.sigma"].attrs == {"long_name": "width in cells, >= 1e-6", "units": "cells"}
    assert played["ending.radius"].attrs["units"] == "cells"
    assert played.median_steps.attrs["units"] == "step"
    assert np.all(played.done == 1)
    assert float(played.success.std()) > 0.1


def test_the_parts_in_which_it_is_played_change_nothing(sweep):
    whole = sweep.play(Chunk(0, 0, 6, 6))
    parts = [sweep.play(Chunk(0, first, 2, 3)) for first in (0, 2, 4)]
    for name, values in whole.items():
        np.testing.assert_array_equal(values, np.concatenate([part[name] for part in parts]))


def test_other_numbers_take_no_other_program(small, run, played):
    compiled = []
    listen = jax.monitoring.register_event_duration_secs_listener
    listen(lambda event, seconds, **_: compiled.append(event) if "backend" in event else None)
    jax.jit(lambda x: x + 1)(1)
    assert compiled  # it is heard
    compiled.clear()
    run(small({"plume.sigma": [2.0, 3.0, 5.0], "ending.radius": [1.0, 2.0]}))
    assert compiled == []


def test_chunks_cover_each_run_of_cells_evenly():
    assert list(chunks((10, 10), 4)) == [
        *(Chunk(0, 0, 4, 4), Chunk(0, 4, 4, 4), Chunk(0, 8, 2, 4)),
        *(Chunk(1, 10, 4, 4), Chunk(1, 14, 4, 4), Chunk(1, 18, 2, 4)),
    ]
    assert list(chunks((2,), 1)) == [
        Chunk(0, 0, 1, 1),
        Chunk(0, 1, 1, 1),
    ]


def test_policies_their_arguments_and_seeds_are_axes(small, run):
    axes = {"plume.sigma": [4.0], "seed": [1, 2], "policy": ["gradient", "random"]}
    data = run(small(axes))
    assert data.success.dims == ("policy", "plume.sigma", "seed")
    assert data.policy.values.tolist() == ["gradient", "random"]
    assert np.all(data.success.sel(policy="gradient") > data.success.sel(policy="random"))
    assert len(np.unique(data.mean_return.sel(policy="gradient"))) > 1  # seeds differ
    believed = {"policy.rate": [1.0, 2.0]}
    sweep = plumejax.Sweep("Olfactory-Isotropic-1D-v0", believed, policy="infotaxis", episodes=2)
    leaves = [jax.tree.leaves(cell.policy) for cell in sweep.cells(range(2))[1]]
    assert any(not np.array_equal(a, b) for a, b in zip(*leaves, strict=True))


def test_listed_cells_of_one_policy_follow_each_other(small):
    columns = {"policy": ["random", "gradient", "random"], "plume.sigma": [1.0, 2.0, 3.0]}
    sweep = small(listed(columns))
    assert sweep.design.columns["policy"].tolist() == ["gradient", "random", "random"]
    assert sweep.design.columns["plume.sigma"].tolist() == [2.0, 1.0, 3.0]
    assert sweep.blocks == (1, 2)


def test_a_drawn_design_is_a_list_of_cells(small, run):
    data = run(small(sobol({"plume.sigma": (1, 16)}, 4, seed=0, log=["plume.sigma"])))
    assert data.success.dims == ("cell",)
    assert data["plume.sigma"].dims == ("cell",)


def test_fewer_lanes_are_taken_where_memory_is_short(sweep, monkeypatch):
    numbers = sweep.cells(range(6))[1]
    (which,) = sweep.differing
    assert len(which) == 2
    shared, varied = module.tabulated([(cell.policy, cell.params) for cell in numbers], which)
    keys = jax.random.split(jax.random.key(0), 6)
    table = module.Table(shared, varied, keys, np.uint32(24))
    game = module.Cells(sweep.made[0], which)
    many, few = (module.needed_bytes(game, table, lanes) for lanes in (64, 8))
    assert many > 4 * few > 0
    monkeypatch.setattr(module, "free_bytes", lambda: 2.0 * few)
    assert module.fitting(game, table, 64) == 8
    monkeypatch.setattr(module, "free_bytes", lambda: 0.0)
    assert module.fitting(game, table, 64) == 1
    monkeypatch.undo()
    assert module.fitting(game, table, 64) == 64


def test_a_device_that_runs_out_of_memory_is_given_half_the_lanes(sweep, monkeypatch, played):
    asked, real = [], lanes.stream

    def short_of_memory(*args, lanes, **more):
        asked.append(lanes)
        if lanes > 40:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
        return real(*args, lanes=lanes, **more)

    monkeypatch.setattr(lanes, "stream", short_of_memory)
    measures = sweep.play(Chunk(0, 0, 6, 6))
    assert asked == [144, 72, 36]
    np.testing.assert_array_equal(measures["success"], played.success.values.ravel())


@pytest.mark.parametrize(
    ("axes", "more", "message"),
    [
        ({"plume.sgma": [1]}, {}, "'plume.sgma' names no number .* Did you mean 'plume.sigma'"),
        ({"plume.source": [1, 2]}, {}, r"plume.source = .* shape \(2,\)"),
        ({"max_steps": [1.5]}, {}, "max_steps = .* not a whole number"),
        ({"plume.sigma": ["wide"]}, {}, "plume.sigma = .* dtype float32"),
        ({"plume.sigma": [4, -1]}, {}, r'in the cell {"plume.sigma": -1}: plume.sigma = -1'),
        ({"policy": ["gradiant"]}, {}, "policy = 'gradiant' .* Did you mean 'gradient'"),
        ({"policy": [1]}, {}, r"policy = \[1\] .* names"),
        ({"seed": [0.5]}, {}, "seed = .* whole numbers"),
        ({"seed": [3, -1]}, {}, r"seed = \[3, -1\] .* 0 <= seed"),
        ({"policy.cast": [1]}, {}, "gradient has no argument cast"),
        ({"plume.sigma": [1]}, {"plumes": 2}, "plumes, with plume.sigma swept = 2 .* must be 0"),
        ({"plume.sigma": [1]}, {"episodes": 0}, "episodes = 0 .* an int > 0"),
        ({"plume.sigma": [1]}, {"seed": -1}, "seed = -1"),
        ({"plume.sigma": [1]}, {"seed": 1.5}, "seed = 1.5 .* an int from 0"),
        ({"plume.sigma": [1]}, {"seed": "1"}, "seed = '1' .* an int from 0"),
        ({"plume.sigma": [1]}, {"plumes": "x"}, "plumes = 'x' .* an int >= 0"),
        ({"plume.sigma": [1]}, {"overrides": 3}, "overrides = 3 .* a table"),
        ({"plume.sigma": [3, 3]}, {}, "plume.sigma = .* all different"),
        ({"plume.sigma": 3}, {}, "plume.sigma = 3 .* a list of values"),
        ([1, 2], {}, r"axes = \[1, 2\] .* or a Design"),
        ({1: [1]}, {}, "axes = .* or a Design"),
    ],
)
def test_what_cannot_be_swept_is_refused_at_once(small, axes, more, message):
    with pytest.raises(ValidationError, match=message):
        small(axes, **more)


DEVICES = """
import jax
import plumejax
from plumejax.sweeps import sweep as module
module.EPISODES = 24
sweep = plumejax.Sweep(
    "PlumeSearchLocal-v0",
    {"plume.sigma": [1.0, 4.0, 16.0], "ending.radius": [1.5, 3.0]},
    policy="gradient",
    episodes=24,
    seed=5,
    static={"grid_size": (16, 16)},
    overrides={"max_steps": 8, "plume.source": [8, 8]},
)
data = sweep.run(progress=lambda ended: None)
print(jax.local_device_count(), len(sweep.chunks), *data.mean_return.values.ravel())
"""


def test_each_device_plays_its_share_and_the_result_is_the_same(played):
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    environment = {**os.environ, "XLA_FLAGS": flags}
    command = [sys.executable, "-c", DEVICES]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    devices, parts, *means = out.stdout.split()
    assert (devices, parts) == ("2", "6")
    expected = played.mean_return.values.ravel()
    np.testing.assert_allclose(np.asarray(means, float), expected, rtol=1e-6)
