"""Adapters of agent frameworks, one module and one extra each: `openai_agents`, `langgraph`, `llama_index`,
`pydantic_ai`. See docs/design/frameworks.md.

A framework is imported in its module alone. Everything that an adapter reads or writes goes through the client.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def framework(extra: str) -> Iterator[None]:
    """Raise ImportError, with the extra of the package, if a module of a framework is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or extra).partition(".")[0]
        raise ImportError(f"this adapter needs {package}: pip install 'memstream[{extra}]'", name=package) from error
