"""A package that is hidden from another one, which imports it where it finds it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

FASTEMBED: Final = "fastembed"
"""qdrant-client imports it where it finds it, with itself and with its first client: a quarter of a second, and 24 MB.
A local embedder imports it itself."""


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
