"""Faster imports of third-party packages, without expensive parts that this package does not use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pydantic import BaseModel

FASTEMBED: Final = "fastembed"
"""qdrant-client imports fastembed when it is installed, both on import and with its first client. This costs 0.25 s and
24 MB. A local embedder imports fastembed itself."""


@contextmanager
def hidden_package(name: str) -> Iterator[None]:
    """Make imports of a package fail within the block, as if it were not installed. No effect on a package that is
    already imported."""
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
    """Leave pydantic models incomplete when `package` is imported within the block.

    Pydantic completes such a model on its first use. qdrant-client would complete 340 models on import; a process uses
    only some of them.
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
