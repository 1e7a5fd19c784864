"""search/state: the pytrees that the components of a search hand to each other."""

from typing import Any

import jax
from flax import struct

from plumejax.base.environment import EnvParams, EnvState
from plumejax.plumes.interface import Air


class Params(EnvParams):
    """Every number of a search; each component reads its own under its own name.

    Attributes:
      max_steps: int32[], steps after which an episode is truncated.
      dt: float32[], s, what one step takes; that of the plume, if the plume knows time.
      plume, sensor, motion, reward, ending, start, arena: what the component's
        `default_params()` gives, or a copy with other numbers.
    """

    dt: Any
    plume: Any
    sensor: Any
    motion: Any
    reward: Any
    ending: Any
    start: Any
    arena: Any


class Agent(struct.PyTreeNode):
    """The searcher.

    Attributes:
      position: float32[d], cells, `[x, y]`; whole numbers under a grid motion.
      heading: float32[], degrees counter-clockwise from +x, in [0, 360).
      motion: what the motion keeps (a velocity, a timer); `()` if nothing.
    """

    position: jax.Array
    heading: jax.Array
    motion: Any = ()


class SearchState(EnvState):
    """The state of an episode.

    Attributes:
      agent: the searcher.
      plume: the plume's own state; a source drawn for the episode lives here.
      sensor: the sensor's own state.
      air: the `Air` at the agent, if the motion feels it (`feels_air`), else None.
      found: bool[], the source was found.
      failed: bool[], the ending says the search failed.
    """

    agent: Agent
    plume: Any
    sensor: Any
    air: Any
    found: jax.Array
    failed: jax.Array


class Scene(struct.PyTreeNode):
    """What sensors, endings and rewards see of one step.

    Attributes:
      agent: after the move.
      previous: before the move (at reset: the same).
      action: what was chosen (at reset: None).
      air: the `Air` at the sensor's probes.
      plume_state: the plume's own state.
      sensor: the sensor's own state, after it observed this step (at reset: as it started).
      previous_sensor: the same before this step.
      sources: float32[S, d].
      found, failed: bool[], what the ending said (False while it is being asked, and at reset).
      step_count: int32[], this step counted.
      first: int32[], how many hits the search begins with, if its start drew that (at reset), else
        None.
      team: the other agents after the move, an `Agent` whose leaves lead with their number; None of
        one that searches alone.
      plume: what the plume is, static; its state is `plume_state`, its numbers `params.plume`.
    """

    agent: Agent
    previous: Agent
    action: Any
    air: Air
    plume_state: Any
    sensor: Any
    previous_sensor: Any
    sources: jax.Array
    found: jax.Array
    failed: jax.Array
    step_count: jax.Array
    first: Any = None
    team: Any = None
    plume: Any = struct.field(pytree_node=False, default=None)
