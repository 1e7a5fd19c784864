"""tests/search/conftest: sensors without a task around them."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plumejax.base.spaces import Box
from plumejax.plumes.interface import Air
from plumejax.search.sensors import LocalConcentration
from plumejax.search.state import Agent, Scene


@dataclass(frozen=True)
class TwoNoses:
    """Two readings from `low` up to 1 and 2, the concentrations as they come; draws nothing."""

    random_step = False
    low: tuple[float, float] = (-1.0, 0.0)

    def default_params(self):
        return ()

    def start(self, params):
        return ()

    def probes(self, agent, params):
        return jnp.stack([agent.position, agent.position])

    def observe(self, key, state, scene, params):
        return scene.air.concentration, state

    def space(self, params):
        low, high = np.asarray([self.low, (1.0, 2.0)], np.float32)
        return Box(low, high, (2,))


@pytest.fixture(scope="session")
def two_noses():
    return TwoNoses()


@pytest.fixture(scope="session")
def sensing(local):
    """`sensing(sensor, dt=1.0, **numbers)`: params for a sensor, some of its numbers replaced."""

    def sensing(sensor, dt=1.0, **numbers):
        own = sensor.default_params()
        own = own.replace(**{name: like(getattr(own, name), x) for name, x in numbers.items()})
        params = local[1].replace(sensor=own, dt=np.float32(dt))
        sensor.validate(params)
        return params

    def like(old, new):
        return np.asarray(new, np.asarray(old).dtype) if isinstance(old, np.generic) else new

    return sensing


@pytest.fixture(scope="session")
def smell():
    """`smell(sensor, params, readings)`: what it observes of float[n] or float[n, k], in turn."""
    return lambda *args, **named: np.asarray(_smell(*args, **named)[0])


@pytest.fixture(scope="session")
def smell_and_keep():
    """The same and what the sensor keeps after each: `(observations, states)`."""
    return _smell


def _smell(sensor, params, readings, key=0):
    """One scan over the readings; asserts that each observation is in the sensor's space."""
    air = np.asarray(readings, np.float32).reshape(len(readings), -1)
    agent = Agent(jnp.zeros(2, jnp.float32), jnp.zeros((), jnp.float32))
    space = sensor.space(params)

    @jax.jit
    def run(params, air, keys):
        def step(state, now):
            concentration, key = now
            wind = jnp.zeros((len(concentration), 2), jnp.float32)
            scene = Scene(
                agent=agent,
                previous=agent,
                action=None,
                air=Air(concentration, wind),
                plume_state=(),
                sensor=state,
                previous_sensor=state,
                sources=jnp.zeros((1, 2), jnp.float32),
                found=jnp.asarray(False),
                failed=jnp.asarray(False),
                step_count=jnp.int32(0),
            )
            observation, state = sensor.observe(key, state, scene, params)
            return state, (observation, state)

        return jax.lax.scan(step, sensor.start(params), (air, keys))[1]

    observations, states = run(params, air, jax.random.split(jax.random.key(key), len(air)))
    assert observations.shape == (len(air), *space.shape)
    assert observations.dtype == jnp.float32
    assert np.all(jax.vmap(space.contains)(observations))
    return observations, states


@pytest.fixture(scope="session")
def unsaturated():
    """`(inner sensor, its numbers)`: the local concentration, read up to 1000."""
    inner = LocalConcentration()
    return inner, inner.default_params().replace(saturation=np.float32(1000.0))
