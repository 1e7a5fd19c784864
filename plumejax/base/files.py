"""base/files: files that are never half written."""

import os
import zlib
from pathlib import Path
from zipfile import BadZipFile

UNREADABLE = (
    *(KeyError, ValueError, TypeError, OSError, EOFError),
    *(BadZipFile, NotImplementedError, zlib.error),
)
"""What `np.load` and the reading of its arrays raise at a file that is another, or damaged."""


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path`, which never holds half of it."""
    write_bytes_whole(path, text.encode())


def write_bytes_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path`, which never holds half of it."""
    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(content)
    os.replace(beside, path)
