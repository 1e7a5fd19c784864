"""cli: the `plumejax` command; one module a verb."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code: 0 done, 2 bad input, 130 interrupted."""
    from rich.console import Console
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
        Console(stderr=True, soft_wrap=True).print(f"[bold red]error:[/] {error}", highlight=False)
        return 2
