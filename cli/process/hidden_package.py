"""A package that is hidden while others are imported, because they import it where they find it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hidden_package(name: str) -> Iterator[None]:
    """Let imports of a package fail meanwhile, as where it is not installed. It has no effect once it is imported."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # what the import system takes for "there is none"
    try:
        yield
    finally:
        del sys.modules[name]
