"""tests/arms/test_control: golden values of the helpers, the phase machine, waypoints, registry."""

import jax
import numpy as np
import pytest

from plumejax.arms import (
    PhaseMachine,
    Signals,
    clamp_action,
    deregister_task,
    ee_pose_from_state,
    first_phase,
    get_task,
    gripper_command,
    iter_registered_tasks,
    next_phase,
    phase_signals_from_state,
    plan_rendezvous,
    register_task,
    solve_ik,
    state_from,
    waypoint_library,
)
from plumejax.arms.lift import Lift
from plumejax.base.errors import ValidationError

GOAL = np.asarray([0.3, -0.1, 0.2])


def test_solve_ik_goes_so_far_along_each_axis():
    zero = np.zeros(3)
    np.testing.assert_allclose(solve_ik(zero, GOAL, None, 1), [0.05, -0.05, 0.05], atol=1e-6)
    np.testing.assert_allclose(solve_ik(zero, GOAL, max_iters=3), [0.15, -0.1, 0.15], atol=1e-6)
    np.testing.assert_allclose(solve_ik(zero, [*GOAL, 0, 0, 0, 1]), GOAL, atol=1e-6)
    near = GOAL + 5e-4
    np.testing.assert_allclose(solve_ik(near, GOAL), near, atol=1e-7)
    np.testing.assert_allclose(solve_ik(near, GOAL, atol=1e-5), GOAL, atol=1e-6)
    limits = [[-0.6, 0.6], [0.0, 0.5]]
    np.testing.assert_allclose(solve_ik(np.zeros(2), [2.0, -1.0], limits), [0.6, 0.0], atol=1e-6)
    with pytest.raises(ValidationError, match="target_pose"):
        solve_ik(zero, [1.0, 2.0])
    with pytest.raises(ValidationError, match="limits"):
        solve_ik(zero, GOAL, limits)


def test_poses_are_found_in_states_and_observations():
    start = {
        "arm": [[0, 0, 0.2], [0.3, 0, 0.2]],
        "grip": [1, 1],
        "obj": [[0, 0, 0.08]],
        "held": [[0, 0]],
    }
    state = state_from("lift", start)
    expected = [0.3, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0]
    arms = {"agent_0": {"position": [9, 9, 9]}, "agent_1": {"position": [0.3, 0.0, 0.2]}}
    seen = {"robot_state": {"position": [0.3, 0.0, 0.2]}}
    for given in (state, {"arms": arms}, {"arms": list(arms.values())}, seen):
        np.testing.assert_allclose(ee_pose_from_state(given, 1), expected, atol=1e-7)
    for given in ({}, {"arms": {}}, 3):
        with pytest.raises(KeyError, match="agent 1"):
            ee_pose_from_state(given, 1)


def test_a_rendezvous_is_on_either_side_of_the_object():
    a, b = plan_rendezvous([-0.2, 0, 0.25], [0.2, 0, 0.25], [0, 0, 0.2])
    np.testing.assert_allclose(a, [-0.08, 0, 0.2, 0, 0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(b, [0.08, 0, 0.2, 0, 0, 0, 1], atol=1e-6)
    a, b = plan_rendezvous([-0.3, 0, 0.2], [0.1, 0, 0.2], [0, 0.3, 0.2])
    np.testing.assert_allclose(a[:3], [0.07589466, 0.27470178, 0.2], atol=1e-6)
    np.testing.assert_allclose(b[:3], [-0.07589466, 0.32529822, 0.2], atol=1e-6)
    a, _ = plan_rendezvous([0, 0, 0.2], [0, 0, 0.2], [0, 0, 0.2], 0.1)
    np.testing.assert_allclose(a[:3], [-0.1, 0, 0.2], atol=1e-6)


def test_commands_are_bounded():
    np.testing.assert_allclose(gripper_command([-1, 0.3, 2]), [0, 0.3, 1])
    np.testing.assert_allclose(clamp_action([0.3, 0.0, 0.4, 0.9], 0.05), [0.03, 0, 0.04, 0.9])
    np.testing.assert_allclose(clamp_action([0.01, 0.0, 0.0], 0.05), [0.01, 0, 0])
    np.testing.assert_allclose(clamp_action(np.zeros(4), 0.05), np.zeros(4))


NAMES = ("reach", "grasp", "release")


def test_phases_end_on_signals_and_by_time():
    machine = PhaseMachine(NAMES, {"grasp": 2})
    assert machine.current == "reach"
    assert machine.step({}) == "reach"
    # What collides stays, and its time goes on.
    assert machine.step({"phase_complete": True, "collision": True}) == "reach"
    assert machine.steps_in_phase == 2
    assert machine.step({"phase_complete": True, "nobody": True}) == "grasp"
    assert machine.steps_in_phase == 0
    assert machine.step({}) == "grasp"
    assert machine.step({"collision": True}) == "grasp"
    assert machine.step({}) == "release"
    assert not machine.is_terminal
    assert machine.step({"task_success": True}) == "release"
    assert machine.is_terminal
    assert machine.history == NAMES
    machine.reset()
    assert (machine.current, machine.is_terminal, machine.history) == ("reach", False, ("reach",))


def test_the_pure_machine_is_the_one_on_the_host():
    rng = np.random.default_rng(0)
    seen = rng.random((40, 3)) < [0.3, 0.05, 0.2]
    machine = PhaseMachine(NAMES, {"reach": 3})

    @jax.jit
    def run(seen):
        def one(state, row):
            state = next_phase(state, Signals(*row), np.asarray([3, 0, 0], np.int32))
            return state, state

        return jax.lax.scan(one, first_phase(), seen)[1]

    states = run(seen)
    for t, row in enumerate(seen):
        machine.step(dict(zip(Signals._fields, row, strict=True)))
        assert machine.current == NAMES[int(states.index[t])]
        assert machine.is_terminal == bool(states.finished[t])
        assert machine.steps_in_phase == int(states.steps[t])


def test_machines_that_cannot_be_are_refused():
    for phases, timeouts in (
        ((), None),
        (("a", "a"), None),
        (("a",), {"b": 1}),
        (("a",), {"a": -1}),
    ):
        with pytest.raises(ValueError, match=r"phases|timeouts"):
            PhaseMachine(phases, timeouts)


def test_signals_are_read_from_an_info():
    info = {"phase_complete": True, "task_success": False, "step_count": 5}
    expected = {"phase_complete": True, "task_success": False, "collision": False}
    assert phase_signals_from_state({}, info) == {**expected, "timeout_imminent": False}
    late = phase_signals_from_state({}, {**info, "max_steps": 5})
    assert late["timeout_imminent"]


def test_waypoints_by_phase():
    cfg = {"arms": np.zeros((2, 3)), "cube": [0.1, 0.0, 0.08], "target": [0.0, 0.2, 0.05]}
    places = waypoint_library(get_task("lift"), cfg)
    assert list(places) == list(Lift().phases())
    np.testing.assert_allclose(places["reach"], [[0.04, 0, 0.08], [0.16, 0, 0.08]], atol=1e-6)
    np.testing.assert_allclose(places["place"], [[0, 0.2, 0.32]] * 2, atol=1e-6)
    with pytest.raises(ValidationError, match="cube"):
        waypoint_library(get_task("lift"), {"arms": np.zeros((2, 3))})
    with pytest.raises(ValidationError, match="target"):
        waypoint_library(get_task("lift"), {**cfg, "target": [0.0, np.nan, 0.0]})


def test_tasks_are_registered_by_name():
    assert list(iter_registered_tasks()) == ["drawer", "handoff", "lift"]
    register_task("mine", Lift)
    try:
        assert get_task("mine") == Lift()
        with pytest.raises(ValueError, match="mine"):
            register_task("mine", Lift)
    finally:
        deregister_task("mine")
    for forget in (get_task, deregister_task):
        with pytest.raises(KeyError, match="drawer, handoff, lift"):
            forget("mine")
