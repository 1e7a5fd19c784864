"""adapters/gymnasium_ids: makes every task known to Gymnasium, cheaply: nothing is built yet."""

import gymnasium

from plumejax.base.registry import registered_tasks


def register_all() -> None:
    """Register each task as `plumejax/<id>`; known ids are left alone.

    `gymnasium.make` then gives a `PlumeSearchEnv`, `gymnasium.make_vec` a `PlumeSearchVectorEnv`;
    both take the keyword arguments of these classes. What a task needs goes into the config:
    `gymnasium.make("plumejax/Recorded-v0", config={"static": {"data": PATH}})`.
    """
    for task in registered_tasks().values():
        name = f"plumejax/{task.id}"
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="plumejax.adapters.gymnasium:PlumeSearchEnv",
                vector_entry_point="plumejax.adapters.gymnasium_vector:PlumeSearchVectorEnv",
                kwargs={"task": task.id},
            )
