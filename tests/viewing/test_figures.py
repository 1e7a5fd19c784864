"""tests/viewing/test_figures: a figure in a file."""

import pytest
from matplotlib.figure import Figure

from plumejax.viewing.figures import save


@pytest.mark.parametrize(
    ("suffix", "begin"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_a_file_is_of_the_kind_of_its_name_and_nothing_else_is_left(tmp_path, suffix, begin):
    path = tmp_path / f"a.{suffix}"
    save(Figure(figsize=(1, 1)), path)
    assert path.read_bytes().startswith(begin)
    assert list(tmp_path.iterdir()) == [path]


def test_a_figure_that_cannot_be_drawn_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"before")
    figure = Figure(figsize=(1, 1))
    figure.text(0, 0, r"$\unknown$")
    with pytest.raises(ValueError, match="unknown"):
        save(figure, path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
