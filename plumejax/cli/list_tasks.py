"""cli/list_tasks: `plumejax list`, the tasks there are."""

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from plumejax.base.registry import Task, registered_tasks
from plumejax.search.scores import scores


def list_tasks() -> int:
    """List the tasks: id, behaviour version, how hard it is, one line, where it is from, its scale
    (mean returns of a random and of a perfect agent) and its fully observed twin."""
    console = Console()
    tasks = registered_tasks().values()
    twins = {task.twin_of: task.id for task in tasks if task.twin_of}
    for task in tasks:
        if task.twin_of:
            continue
        beside = ", ".join(part for part in (f"version {task.version}", task.difficulty) if part)
        console.print(f"[bold]{escape(task.id)}[/]  {beside}", highlight=False)
        twin = f"fully observed twin: {twins[task.id]}" if task.id in twins else ""
        for line in (task.summary, task.source, _scale(task), twin):
            if line:
                console.print(Padding(escape(line), (0, 0, 0, 4)), highlight=False)
    return 0


def _scale(task: Task) -> str:
    """What returns mean: those of two agents between which others lie."""
    known = scores(task.id)
    if known is None:
        return ""
    ends = (known.random, known.perfect)
    worst, best = (f"{end.mean_return:.3g} ({end.success:.0%} found)" for end in ends)
    return f"return: random {worst}, perfect {best}"
