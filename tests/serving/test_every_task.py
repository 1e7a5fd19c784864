"""tests/serving/test_every_task: each named task is served, and says what JSON can say."""

import asyncio
import json

import jax
import pytest

import plumejax
from plumejax.serving.environment import State
from plumejax.serving.lanes import LaneEngine
from plumejax.serving.models import encoded

TASKS = [task.id for task in plumejax.registered_tasks().values() if not task.needs]


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_served(task):
    env, params = plumejax.make(task)
    engine = LaneEngine(task, "A task.", (env, params), 2)
    space = env.action_space(params)

    async def play():
        await engine.start()
        state = State(episode_id="e")
        outcomes = [await engine.reset(1, 3, state)]
        for seed in range(5):
            value = encoded(space.sample(jax.random.key(seed)))
            action = engine.action.model_validate_json(json.dumps({"value": value}))
            outcomes.append(await engine.step(1, action, state, float("inf")))
            if json.loads(outcomes[-1].body)["done"]:
                break
        await engine.stop()
        return outcomes

    for count, outcome in enumerate(asyncio.run(play())):
        body = json.loads(outcome.body)
        assert "error" not in body["metadata"]
        assert outcome.state.step_count == count
        assert engine.observation.model_validate(body["observation"])
