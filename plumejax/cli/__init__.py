"""cli: the `plumejax` command; one module a verb."""

import os
import sys
from collections.abc import Callable, Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. The exit code: 0 done, 2 an error that was named, 130 interrupted."""
    from rich.console import Console
    from rich.text import Text
    from tyro.extras import SubcommandApp

    from plumejax.base.errors import PlumeError

    args = list(sys.argv[1:] if arguments is None else arguments)
    app = SubcommandApp()
    try:
        if args[:1] == ["plume"]:
            for name, verb in _plume_verbs().items():
                app.command(name=name)(verb)
            about = "Plumes, without an agent: look at them, roll them out, import recordings."
            return app.cli(prog="plumejax plume", description=about, args=args[1:])
        for name, verb in _verbs().items():
            app.command(name=name)(verb)
        about = (
            "The search for an odour source: train agents and see what they do."
            " `plumejax plume` has verbs of its own, for plumes."
        )
        return app.cli(prog="plumejax", description=about, args=args)
    except PlumeError as error:
        # As text: what a message quotes in brackets is no markup.
        shown = Text.assemble(("error:", "bold red"), f" {error}")
        Console(stderr=True, soft_wrap=True).print(shown, highlight=False)
        return 2
    except OSError as error:
        Console(stderr=True, soft_wrap=True).print(Text(f"error: {error}"), highlight=False)
        return 2
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        return 130


def _verbs() -> dict[str, Callable[..., int]]:
    from plumejax.cli.evaluate import evaluate
    from plumejax.cli.export_states import export_states
    from plumejax.cli.league import league
    from plumejax.cli.list_tasks import list_tasks
    from plumejax.cli.plot import plot
    from plumejax.cli.replay import record_episode, replay_episode
    from plumejax.cli.report import report
    from plumejax.cli.serve import serve
    from plumejax.cli.sweep import sweep
    from plumejax.cli.train import train
    from plumejax.cli.video import video

    return {
        "train": train,
        "evaluate": evaluate,
        "league": league,
        "sweep": sweep,
        "plot": plot,
        "record": record_episode,
        "replay": replay_episode,
        "video": video,
        "report": report,
        "export-states": export_states,
        "serve": serve,
        "list": list_tasks,
    }


def _plume_verbs() -> dict[str, Callable[..., int]]:
    from plumejax.cli.plume_datasets import plume_datasets
    from plumejax.cli.plume_describe import plume_describe
    from plumejax.cli.plume_generate import plume_generate
    from plumejax.cli.plume_import import plume_import
    from plumejax.cli.plume_show import plume_show

    return {
        "describe": plume_describe,
        "show": plume_show,
        "generate": plume_generate,
        "import": plume_import,
        "datasets": plume_datasets,
    }


def command() -> None:
    """The `plumejax` command: `main`, and out."""
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    if code == 130:
        # XLA's threads may still run what was interrupted, and crash in an orderly exit.
        os._exit(code)
    raise SystemExit(code)
