"""cli: the `plumejax` command; one module a verb."""

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. The exit code: 0 done, 2 an error that was named, 130 interrupted."""
    from rich.console import Console
    from rich.text import Text
    from tyro.extras import SubcommandApp

    from plumejax.base.errors import PlumeError
    from plumejax.cli.evaluate import evaluate
    from plumejax.cli.list_tasks import list_tasks
    from plumejax.cli.train import train

    app = SubcommandApp()
    app.command(train)
    app.command(evaluate)
    app.command(name="list")(list_tasks)
    args = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return app.cli(
            prog="plumejax",
            description="The search for an odour source: train agents and see what they do.",
            args=args,
        )
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


def command() -> None:
    """The `plumejax` command: `main`, and out."""
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    if code == 130:
        # XLA's threads may still run what was interrupted, and crash in an orderly exit.
        os._exit(code)
    raise SystemExit(code)
