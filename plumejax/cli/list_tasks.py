"""cli/list_tasks: `plumejax list`, the tasks there are."""

from rich.console import Console
from rich.table import Table

from plumejax.base.registry import registered_tasks


def list_tasks() -> int:
    """List the tasks: id, behaviour version, one line, where it is from, how hard it is."""
    heads = ("task", "version", "what it is", "source", "difficulty")
    table = Table(*heads, box=None, header_style="bold")
    table.columns[0].no_wrap = True
    for task in registered_tasks().values():
        about = (task.summary, task.source, task.difficulty)
        table.add_row(task.id, str(task.version), *about)
    Console().print(table)
    return 0
