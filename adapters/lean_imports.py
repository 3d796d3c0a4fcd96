"""Imports of others' packages without the part that costs much and that we do not use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pydantic import BaseModel

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


@contextmanager
def deferred_models(package: str) -> Iterator[None]:
    """Let a package that is imported meanwhile not complete its pydantic models. Pydantic completes a model by itself
    where it is used for the first time. qdrant-client completes 340 at once, of which a process uses a part."""
    complete = BaseModel.__dict__["model_rebuild"]

    def deferred(
        cls: type[BaseModel], /, *, raise_errors: bool = True, _parent_namespace_depth: int = 2, **options: Any
    ) -> bool | None:
        by_itself = not raise_errors  # pydantic, at the first use
        if not by_itself and cls.__module__.startswith(f"{package}."):
            return None
        done: bool | None = complete.__get__(None, cls)(
            raise_errors=raise_errors,
            _parent_namespace_depth=_parent_namespace_depth + 1,  # this function stands between
            **options,
        )
        return done

    BaseModel.model_rebuild = classmethod(deferred)  # type: ignore[assignment]
    try:
        yield
    finally:
        BaseModel.model_rebuild = complete  # type: ignore[method-assign]
