"""base/extras: packages that only some use, and the extra that installs each."""

import importlib
from typing import Any

from plumejax.base.errors import PlumeError


def need(package: str, extra: str) -> Any:
    """The module `package`. Raises `PlumeError`, naming the extra, if it is not installed."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise PlumeError(f"this needs {package}: pip install 'plumejax[{extra}]'") from error
