"""tests/learning/test_checkpoints: what is restored goes on exactly as what was saved."""

import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from plumejax.base.errors import ValidationError
from plumejax.learning.checkpoints import (
    describe,
    is_saved,
    require_same,
    restore,
    restore_tree,
    save,
    save_tree,
    versions,
)
from plumejax.learning.ppo import Hyperparameters, Shapes, continue_training, ppo
from plumejax.search.rewards import with_progress_reward

SHAPES = Shapes(num_envs=8, num_steps=8, num_minibatches=2, num_epochs=1, hidden=(8,))


@pytest.fixture(scope="module")
def saved(local, tmp_path_factory):
    env, params = with_progress_reward(*local)
    algorithm = ppo(env, params, SHAPES)
    go_on = jax.jit(partial(continue_training, algorithm, updates=2))
    begin = jax.jit(algorithm.init)(jax.random.key(5), params)
    training, _ = go_on(begin, params, Hyperparameters())
    directory = tmp_path_factory.mktemp("run") / "checkpoints"
    save(directory, training, "a-task", describe(params))
    return algorithm, params, go_on, training, directory


def _numbers(training):
    training = training._replace(key=jax.random.key_data(training.key))
    return jax.tree.leaves(training)


def test_restored_training_is_whole_and_goes_on_bit_for_bit(saved):
    algorithm, params, go_on, training, directory = saved
    like = jax.eval_shape(algorithm.init, jax.random.key(0), params)
    restored, numbers = restore(directory, like, "a-task")
    require_same(numbers, describe(params))
    pairs = [
        (training, restored),
        tuple(go_on(t, params, Hyperparameters())[0] for t in (training, restored)),
    ]
    for one, other in pairs:
        for a, b in zip(_numbers(one), _numbers(other), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_any_tree_comes_back_keys_and_all(tmp_path):
    key = jax.random.key(3)
    tree = {"key": key, "none": np.zeros((0, 2), np.float32), "flags": (np.ones(3, bool), None)}
    save_tree(tmp_path / "tree", tree)
    read = restore_tree(tmp_path / "tree", jax.eval_shape(lambda: tree))
    assert jax.tree.structure(read) == jax.tree.structure(tree)
    assert jax.random.bits(read["key"]) == jax.random.bits(key)
    assert read["none"].shape == (0, 2)
    assert read["flags"][0].dtype == bool
    with pytest.raises(ValidationError, match="another form"):
        restore_tree(tmp_path / "tree", {**tree, "more": np.zeros(2)})
    with pytest.raises(ValidationError, match="save_tree wrote"):
        restore_tree(tmp_path / "nothing", tree)


def test_an_agent_without_readings_is_saved_too(full, tmp_path):
    env, params = with_progress_reward(*full)
    # The field is not remembered when it is large; a small one is made to be.
    algorithm = ppo(env, params, SHAPES)
    encoder = replace(algorithm.encoder, changes=False)
    algorithm = replace(algorithm, encoder=encoder)
    training = jax.jit(algorithm.init)(jax.random.key(0), params)
    assert training.memory.reading.size == 0
    save(tmp_path / "checkpoints", training, "a-task", describe(params))
    restored, _ = restore(tmp_path / "checkpoints", training, "a-task")
    for a, b in zip(_numbers(training), _numbers(restored), strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_task_is_refused(saved):
    _, _, _, training, directory = saved
    with pytest.raises(ValidationError, match="a-task"):
        restore(directory, training, "another-task")


def test_other_numbers_are_named(saved):
    _, params, _, _, _ = saved
    other = params.replace(plume=params.plume.replace(sigma=np.float32(9.0)))
    with pytest.raises(ValidationError, match=r"plume\.sigma"):
        require_same(describe(params), describe(other))


def test_another_network_is_refused(saved, local):
    _, params, _, _, directory = saved
    env, params = with_progress_reward(*local)
    wider = ppo(env, params, Shapes(num_envs=8, num_minibatches=2, hidden=(16,)))
    like = jax.eval_shape(wider.init, jax.random.key(0), params)
    with pytest.raises(ValidationError, match="another network"):
        restore(directory, like, "a-task")


def test_no_checkpoint_is_one_clear_error(saved, tmp_path):
    with pytest.raises(ValidationError, match="a folder with a checkpoint"):
        restore(tmp_path / "nothing", saved[3], "a-task")


def test_versions_name_what_a_result_depends_on():
    assert versions()["jax"] == jax.__version__


def test_a_damaged_checkpoint_is_one_clear_error(saved, tmp_path):
    directory = shutil.copytree(saved[4], tmp_path / "checkpoints")
    for path in directory.rglob("meta/*"):
        path.write_text("{")
    with pytest.raises(ValidationError, match="damaged"):
        restore(directory, saved[3], "a-task")


def test_of_a_checkpoint_that_was_never_whole_nothing_counts(saved, tmp_path):
    assert is_saved(saved[4])
    assert not is_saved(tmp_path / "nowhere")
    cut = tmp_path / "checkpoints"
    (cut / "5.orbax-checkpoint-tmp").mkdir(parents=True)
    assert not is_saved(cut)


FULL = """
import resource, sys
from pathlib import Path
from plumejax.cli import main
import plumejax.cli.train as train

train._SECONDS_BETWEEN_CHECKPOINTS = 0.0
kept = train.save
def save(directory, *rest):
    kept(directory, *rest)
    # From the second on no file may grow: what a full disk says, too, in the middle of a write.
    resource.setrlimit(resource.RLIMIT_FSIZE, (256, resource.RLIM_INFINITY))
train.save = save
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_full_disk_loses_no_earlier_checkpoint(tmp_path):
    run = tmp_path / "run"
    few = ["--set", "max_steps=20", "--num-envs", "8", "--steps", "5000"]
    command = [sys.executable, "-c", FULL, "train", "--out", str(run), *few]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "error:" in done.stderr
    checkpoints = run / "checkpoints"
    whole = [int(each.name) for each in checkpoints.iterdir() if each.name.isdigit()]
    assert 5 in whole
    go_on = [sys.executable, "-m", "plumejax", "train", "--resume", str(run)]
    done = subprocess.run(go_on, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (run / "evaluation.json").is_file()
