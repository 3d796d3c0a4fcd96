"""Faster imports of third-party packages, without expensive parts that this package does not use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pydantic import BaseModel

FASTEMBED: Final = "fastembed"
"""Optional package. If it is installed, two steps import it: the import of qdrant-client and the creation of the first
Qdrant client. This costs 0.25 s and 24 MB. Neither step needs it: a local embedder imports fastembed itself."""


@contextmanager
def hidden_package(name: str) -> Iterator[None]:
    """Make imports of a package fail within the block, as if the package were not installed. A package that is already
    imported stays importable."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # the import system treats None as "not installed"
    try:
        yield
    finally:
        del sys.modules[name]


@contextmanager
def deferred_models(package: str) -> Iterator[None]:
    """Import `package` within the block without completing its pydantic models.

    Pydantic completes an incomplete model on its first use. Without this function, the import of qdrant-client
    completes 340 models, and a process uses only some of them.
    """
    complete = BaseModel.__dict__["model_rebuild"]

    def deferred(
        cls: type[BaseModel], /, *, raise_errors: bool = True, _parent_namespace_depth: int = 2, **options: Any
    ) -> bool | None:
        by_itself = not raise_errors  # the call of pydantic on the first use
        if not by_itself and cls.__module__.startswith(f"{package}."):
            return None
        done: bool | None = complete.__get__(None, cls)(
            raise_errors=raise_errors,
            _parent_namespace_depth=_parent_namespace_depth + 1,  # this function adds one frame
            **options,
        )
        return done

    BaseModel.model_rebuild = classmethod(deferred)  # type: ignore[assignment]
    try:
        yield
    finally:
        BaseModel.model_rebuild = complete  # type: ignore[method-assign]
