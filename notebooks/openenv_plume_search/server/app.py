"""The server's app: another task is another id here."""

import argparse

import uvicorn
from openenv.core.env_server import create_app

from plumejax.serving.openenv import openenv_task

TASK = "PlumeSearchLocal-v0"

app = create_app(*openenv_task(TASK), env_name="openenv_plume_search", max_concurrent_envs=16)


def main() -> None:
    """Serve it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    uvicorn.run(app, host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
