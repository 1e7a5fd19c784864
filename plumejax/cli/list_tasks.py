"""cli/list_tasks: `plumejax list`, the tasks there are."""

from rich.console import Console
from rich.table import Table

from plumejax.base.registry import registered_tasks


def list_tasks() -> int:
    """List the tasks: id, behaviour version, one line."""
    table = Table("task", "version", "what it is", box=None, header_style="bold")
    for task in registered_tasks().values():
        table.add_row(task.id, str(task.version), task.summary)
    Console().print(table)
    return 0
