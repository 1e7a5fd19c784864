"""viewing/figures: what all figures share: their colours, and how one comes into a file."""

from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure

from plumejax.base.files import write_bytes_whole

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
"""Of Okabe and Ito, told apart by colour-blind readers."""

SOURCE = "#E69F00"
"""Of them, that of a source and its goal disc."""


def save(figure: Figure, path: Path) -> None:
    """Write a figure to `path`, *.png, *.pdf or *.svg, which never holds half of it."""
    content = BytesIO()
    figure.savefig(content, dpi=150, format=path.suffix[1:])
    write_bytes_whole(path, content.getvalue())
