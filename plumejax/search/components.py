"""search/components: what each component of a search must be able to do."""

from typing import Any, Protocol

import jax

from plumejax.base.errors import ComponentError, within
from plumejax.search.state import Agent, Params, Scene

# Every method is pure and gets the task's whole `Params`; a component reads its own numbers under
# its own name (`params.sensor`, ...). The static part is a frozen dataclass, compared by value.
# What may be left out: `random_step` (True: a step uses its key); of a motion, `feels_air`
# (False: it does not ask for the air at the agent), `egocentric` (False: its actions are not meant
# relative to the heading) and a method `begin(agent, params) -> agent`, which puts what the motion
# keeps into `agent.motion` when an episode starts; `asks`, names of methods of the plume that it
# calls beyond those that all have, such as ("nearest",) of `plumes.puffs`; of a sensor,
# `hit(observation, params) -> bool[] | None`, whether an observation tells of a hit, None if it
# never tells; of an arena,
# `sides(params) -> float32[d]`, how long it is, which twins need; of all but the plume
# `validate(params)`, which refuses bad numbers on the host; of a start,
# `validate_place(arena, params)`, which refuses a region from which no episode can begin, and of
# one that draws the source `validate_source(plume, params)`.


class Sensor(Protocol):
    """Turns a scene into an observation."""

    def default_params(self) -> Any:
        """The numbers it proposes."""

    def start(self, params: Params) -> Any:
        """Its own state at the start of an episode; `()` if it keeps nothing."""

    def probes(self, agent: Agent, params: Params) -> jax.Array:
        """float32[n, d]: where the air is sampled for it."""

    def observe(self, key: jax.Array, state: Any, scene: Scene, params: Params) -> tuple[Any, Any]:
        """`(observation, state)`; `scene.air` is the air at the probes."""

    def space(self, params: Params) -> Any:
        """The space of its observations."""


class Motion(Protocol):
    """Moves the agent."""

    def default_params(self) -> Any:
        """The numbers it proposes."""

    def move(
        self, key: jax.Array, agent: Agent, action: Any, air: Any, arena: Any, params: Params
    ) -> Agent:
        """The agent after `action`; `arena.settle` decides what a wall does."""

    def space(self, params: Params) -> Any:
        """The space of its actions."""

    def mask(self, agent: Agent, arena: Any, params: Params) -> jax.Array:
        """bool[number of actions]: those not known to be blocked; bool[1], True, if continuous."""


class Reward(Protocol):
    """Pays for a step."""

    def default_params(self) -> Any:
        """The numbers it proposes."""

    def reward(self, scene: Scene, params: Params) -> jax.Array:
        """float32[]."""


class Ending(Protocol):
    """Says when a search is over."""

    def default_params(self) -> Any:
        """The numbers it proposes."""

    def ended(self, scene: Scene, params: Params) -> tuple[jax.Array, jax.Array]:
        """`(found, failed)`, bool[] each; either one terminates the episode."""


class Start(Protocol):
    """Places the agent, and the source where that is drawn."""

    def default_params(self) -> Any:
        """The numbers it proposes."""

    def place(
        self, key: jax.Array, plume: Any, plume_state: Any, arena: Any, params: Params
    ) -> tuple[Any, Agent, Any]:
        """`(plume_state, agent, first)`; `first` is None, or int32[], the hits that were drawn for
        the first observation."""


class Arena(Protocol):
    """Where an agent can be."""

    def default_params(self) -> Any:
        """The numbers it proposes."""

    def inside(self, positions: jax.Array, params: Params) -> jax.Array:
        """bool[n]: which of float32[n, d] an agent may stand on."""

    def blocked(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        """bool[]: whether the way from one float32[d] to the other is barred."""

    def settle(self, origin: jax.Array, target: jax.Array, params: Params) -> jax.Array:
        """float32[d]: where an agent ends that wants to go from `origin` to `target`."""


METHODS = {
    "plume": ("default_params", "start", "advance", "sample", "sources"),
    "sensor": ("default_params", "start", "probes", "observe", "space"),
    "motion": ("default_params", "move", "space", "mask"),
    "reward": ("default_params", "reward"),
    "ending": ("default_params", "ended"),
    "start": ("default_params", "place"),
    "arena": ("default_params", "inside", "blocked", "settle"),
}
"""The methods that make an object a component, by the component's name."""


def require_component(role: str, component: Any) -> None:
    """Raise `ComponentError` if `component` cannot play `role` ("plume", "sensor", ...)."""
    if isinstance(component, type):
        name = component.__name__
        raise ComponentError(f"{role} = {name} is a class: give an object, such as {name}()")
    for method in METHODS[role]:
        if not callable(getattr(component, method, None)):
            raise ComponentError(
                f"{role} = {component!r} lacks the method {method}(); a {role} has: "
                + ", ".join(METHODS[role])
            )
    try:
        hash(component)
    except TypeError:
        raise ComponentError(
            f"{role} = {component!r} cannot be hashed: make it a frozen dataclass of hashable"
            " choices, and put its numbers into default_params()"
        ) from None


def require_answers(role: str, component: Any, plume: Any) -> None:
    """Raise `ComponentError` if `component` asks of `plume` what it cannot answer: its attribute
    `asks` names methods of the plume beyond those that all have."""
    for method in getattr(component, "asks", ()):
        if not answers(plume, method):
            raise ComponentError(
                f"{role} = {component!r} asks the plume for {method}(), which {plume!r} does not"
                " have: plumes of puffs do, and banks of them"
            )


def answers(plume: Any, method: str) -> bool:
    """Whether a plume has a method; one that replays another, if that has it too."""
    inner = getattr(plume, "plume", None)
    has = callable(getattr(plume, method, None))
    return has and (inner is None or answers(inner, method))


def asked_by(parts: Any) -> tuple[str, ...]:
    """What components ask of the plume that are parts of one, (name, component) of each."""
    return tuple(method for _, part in parts for method in getattr(part, "asks", ()))


def hit(sensor: Any, observation: Any, params: Params) -> jax.Array | None:
    """bool[]: whether an observation of `sensor` tells of a hit; None if it never tells."""
    tells = getattr(sensor, "hit", None)
    return None if tells is None else tells(observation, params)


def validate_part(role: str, name: str, part: Any, params: Params) -> None:
    """`part.validate(params)`, which names numbers as if the part were the `role` itself; in a
    refusal they have their whole path."""
    if hasattr(part, "validate"):
        with within(role, name):
            part.validate(params)
