"""tests/base/test_registry: ids, their errors, and what make checks."""

import pytest

import plumejax
from plumejax.base import registry
from plumejax.base.errors import ComponentError, ValidationError
from plumejax.search.motion import Oriented


def test_the_tasks_of_the_contract_are_registered():
    tasks = plumejax.registered_tasks()
    assert {"PlumeSearch-v0", "PlumeSearchLocal-v0"} <= set(tasks)
    assert all(task.id == task_id and task.version >= 1 for task_id, task in tasks.items())


def test_the_list_of_tasks_is_a_copy():
    plumejax.registered_tasks().clear()
    assert plumejax.registered_tasks()


def test_an_id_is_taken_once():
    with pytest.raises(ValidationError, match="registered already"):
        plumejax.register(registry.find("PlumeSearch-v0"))


def test_a_new_task_is_made_by_its_id(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", plumejax.registered_tasks())
    old = registry.find("PlumeSearchLocal-v0")
    plumejax.register(plumejax.Task("Own-v0", old.factory, "as the local one"))
    env, params = plumejax.make("Own-v0", grid_size=(16, 12))
    assert env == plumejax.make("PlumeSearchLocal-v0", grid_size=(16, 12))[0]
    assert params.max_steps == 1000


def test_what_a_task_needs_is_asked_for(monkeypatch):
    monkeypatch.setattr(registry, "_tasks", plumejax.registered_tasks())
    old = registry.find("PlumeSearchLocal-v0")
    plumejax.register(plumejax.Task("Needy-v0", old.factory, "needs", needs=("data",)))
    with pytest.raises(ValidationError, match="Needy-v0 needs data"):
        plumejax.make("Needy-v0")


@pytest.mark.parametrize(
    ("task_id", "kwargs", "message"),
    [
        ("PlumeSerch-v0", {}, "There are: PlumeSearch-v0"),
        ("PlumeSearch-v0", {"gridsize": (8, 8)}, "gridsize.*Did you mean 'grid_size'.*sensor"),
        ("TwoArm-Lift-v0", {"rewards": "progress"}, "'rewards'.*There are: reward, view"),
        ("PlumeSearch-v0", {"grid_size": (8, 0)}, "grid_size"),
        ("PlumeSearch-v0", {"grid_size": 8}, "grid_size"),
        ("PlumeSearch-v0", {"overrides": {"plume.sgma": 1.0}}, "plume.sigma"),
        ("PlumeSearch-v0", {"overrides": {"plume.sigma": 0.0}}, r"plume.sigma.*>= 1e-6"),
        ("PlumeSearch-v0", {"overrides": {"plume.sigma": float("nan")}}, "finite"),
        ("PlumeSearch-v0", {"overrides": {"max_steps": 0}}, "max_steps"),
    ],
)
def test_make_refuses(task_id, kwargs, message):
    with pytest.raises(ValidationError, match=message):
        plumejax.make(task_id, **kwargs)


def test_make_names_the_method_that_a_component_lacks():
    with pytest.raises(ComponentError, match=r"reward.*default_params\(\)"):
        plumejax.make("PlumeSearchLocal-v0", reward=object())


def test_environments_composed_alike_are_equal(local):
    env, _ = local
    twin, _ = plumejax.make("PlumeSearchLocal-v0", grid_size=[16, 12])
    assert env == twin
    assert hash(env) == hash(twin)
    assert env != plumejax.make("PlumeSearchLocal-v0", grid_size=(12, 16))[0]


def test_what_make_is_given_by_mistake_is_named():
    for overrides in ("plume.sigma=8", [("plume.sigma", 8)], 3):
        with pytest.raises(ValidationError, match="overrides"):
            plumejax.make("PlumeSearchLocal-v0", overrides=overrides)
    with pytest.raises(ComponentError, match=r"motion = Oriented is a class.*Oriented\(\)"):
        plumejax.make("PlumeSearchLocal-v0", motion=Oriented)
    for wrong in ("PlumeSearchlocal-v0", ["PlumeSearchLocal-v0"]):
        with pytest.raises(ValidationError, match="Did you mean 'PlumeSearchLocal-v0'"):
            plumejax.make(wrong)
