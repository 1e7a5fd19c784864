"""adapters/gymnasium_ids: makes every task known to Gymnasium, cheaply: nothing is built yet."""

import gymnasium

from plumejax.base.registry import registered_tasks

ENTRY_POINTS: dict[str, dict[str, str]] = {
    "search": {
        "entry_point": "plumejax.adapters.gymnasium:PlumeSearchEnv",
        "vector_entry_point": "plumejax.adapters.gymnasium_vector:PlumeSearchVectorEnv",
    },
    "arms": {"entry_point": "plumejax.adapters.two_arm:TwoArmEnv"},
}
"""What Gymnasium makes of a task, by its family."""


def register_all() -> None:
    """Register each task as `plumejax/<id>`; known ids are left alone.

    `gymnasium.make` then gives a `PlumeSearchEnv`, `gymnasium.make_vec` a `PlumeSearchVectorEnv`,
    and of a two-arm task a `TwoArmEnv`; they take the keyword arguments of these classes. What a
    task needs goes into the config:
    `gymnasium.make("plumejax/Recorded-v0", config={"static": {"data": PATH}})`.
    """
    for task in registered_tasks().values():
        name = f"plumejax/{task.id}"
        if name not in gymnasium.registry:
            points = ENTRY_POINTS[task.family]
            gymnasium.register(name, kwargs={"task": task.id}, **points)  # type: ignore[arg-type]
