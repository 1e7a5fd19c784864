"""cli/plume_datasets: `plumejax plume datasets`, the public recordings and how to import them."""

import tyro
from rich.console import Console
from rich.table import Table

from plumejax.plumes.datasets import DATASETS, FILAMENTS, POINTS, Dataset, find
from plumejax.plumes.importing import Recipe


def plume_datasets(id: tyro.conf.Positional[str | None] = None) -> int:
    """List the public recordings, or all that is known of one. Nothing is downloaded.

    Args:
        id: of a recording.
    """
    console = Console()
    console.print(table() if id is None else details(find(id)))
    return 0


def table() -> Table:
    """All of them, a row each."""
    shown = Table(box=None, header_style="bold")
    for name, wraps in (("id", False), ("what it is", True), ("doi", False), ("import", True)):
        shown.add_column(name, no_wrap=not wraps)
    for each in DATASETS.values():
        shown.add_row(each.id, f"{each.title} ({each.size})", each.doi, _how(each))
    return shown


def details(dataset: Dataset) -> Table:
    """One of them, a line for each thing known."""
    shown = Table(title=dataset.id, show_header=False, box=None, title_justify="left")
    shown.add_column(no_wrap=True, style="bold")
    shown.add_column(overflow="fold")
    unknown = "none found published; the import keeps the file's own"
    rows = {
        "what": dataset.title,
        "by": dataset.authors,
        "data": dataset.where,
        "licence": dataset.licence,
        "file": f"{dataset.file} ({dataset.size})",
        "md5": dataset.md5 or unknown,
        "sha256": dataset.sha256 or unknown,
        **_stored(dataset.recipe),
        "import": f"plumejax plume import FILE --dataset {dataset.id} --out DIR"
        if dataset.recipe not in (None, POINTS)
        else "see below",
    }
    for name, value in rows.items():
        shown.add_row(name, value)
    for note in dataset.notes:
        shown.add_row("", note)
    return shown


def _how(dataset: Dataset) -> str:
    if dataset.recipe == POINTS:
        return "no movie"
    if dataset.recipe is None:
        return "by hand"
    return "checked" if dataset.md5 or dataset.sha256 else "unchecked"


def _stored(recipe: Recipe | str | None) -> dict[str, str]:
    """What a recipe says of the file."""
    if recipe == FILAMENTS:
        return {"stored as": "filaments; the slice at the source's height is imported"}
    if not isinstance(recipe, Recipe):
        return {}
    scale = f"lengths {recipe.length}" if recipe.length else "unknown: give --mm-per-pixel"
    if recipe.mm_per_pixel is not None:
        scale = "{:g} x {:g} mm a pixel".format(*recipe.mm_per_pixel)
    unknown = "unknown: give --source"
    return {
        "stored as": f"{recipe.format}, {recipe.variable or 'its only array'}, axes {recipe.axes}",
        "scale": scale,
        "rate": f"{recipe.frames_per_second:g} frames a second",
        "source": f"pixel {recipe.source}" if recipe.source else unknown,
        "made of it": f"cells of {recipe.downsample[0]} x {recipe.downsample[1]} pixels,"
        f" {recipe.dtype}",
    }
