"""cli/list_tasks: `plumejax list`, the tasks there are."""

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from plumejax.base.registry import registered_tasks


def list_tasks() -> int:
    """List the tasks: id, behaviour version, how hard it is, one line, where it is from."""
    console = Console()
    for task in registered_tasks().values():
        beside = ", ".join(part for part in (f"version {task.version}", task.difficulty) if part)
        console.print(f"[bold]{escape(task.id)}[/]  {beside}", highlight=False)
        for line in (task.summary, task.source):
            if line:
                console.print(Padding(escape(line), (0, 0, 0, 4)), highlight=False)
    return 0
