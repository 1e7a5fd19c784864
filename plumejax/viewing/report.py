"""viewing/report: results as one HTML file that needs no other: tables, figures, a player."""

import base64
import html
import io
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from plumejax.viewing.frames import colour_table
from plumejax.viewing.player import packed


class Section(NamedTuple):
    """A part of a report.

    Attributes:
      title: of it.
      text: a sentence or two, plain.
      rows: of a table, the first its head; none makes no table.
      figures: pictures as `Figure`s, or the bytes of PNG files, by what they show.
    """

    title: str
    text: str = ""
    rows: Sequence[Sequence[Any]] = ()
    figures: Mapping[str, Figure | bytes] = {}


def page(
    title: str, sections: Sequence[Section], episodes: Sequence[Mapping[str, Any]] = ()
) -> str:
    """The report as HTML, which loads nothing from anywhere.

    Args:
      title: of it.
      sections: in their order; the player of the episodes comes after the first.
      episodes: of `viewing.player.episodes`; none makes no player.
    """
    folder = files("plumejax.viewing") / "page"
    parts = [_section(each) for each in sections]
    if episodes:
        parts.insert(1, (folder / "player.html").read_text())
    data = {"episodes": list(episodes), "palette": packed(colour_table())}
    script = (folder / "player.js").read_text() if episodes else ""
    # In a script "</" would end it.
    told = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:;'
        " style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
        f"<title>{html.escape(title)}</title>\n"
        f"<style>\n{(folder / 'report.css').read_text()}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{html.escape(title)}</h1>\n" + "\n".join(parts) + "\n</main>\n"
        f'<script type="application/json" id="data">{told}</script>\n'
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    parts = [f"<section>\n<h2>{html.escape(section.title)}</h2>"]
    if section.text:
        parts.append(f"<p>{html.escape(section.text)}</p>")
    if section.rows:
        parts.append(_table(section.rows))
    for name, picture in section.figures.items():
        content = picture if isinstance(picture, bytes) else _png(picture)
        data = base64.b64encode(content).decode()
        said = html.escape(name)
        parts.append(
            f'<figure><img alt="{said}" src="data:image/png;base64,{data}">'
            f"<figcaption>{said}</figcaption></figure>"
        )
    return "\n".join([*parts, "</section>"])


def _table(rows: Sequence[Sequence[Any]]) -> str:
    head, *body = ([html.escape(str(cell)) for cell in row] for row in rows)
    lines = ["<tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body]
    return '<div class="wide"><table>\n' + "\n".join(lines) + "\n</table></div>"


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, dpi=110, format="png")
    return content.getvalue()
