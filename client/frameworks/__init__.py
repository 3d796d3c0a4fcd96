"""Adapters for agent frameworks: `openai_agents`, `langgraph`, `llama_index`, `pydantic_ai`.

Each adapter is one module with its own extra of the package. A framework is imported only in its adapter's module. An
adapter reads and writes memory only through the client. See docs/design/frameworks.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def framework(extra: str) -> Iterator[None]:
    """Raise ImportError if a module of a framework is missing. The message names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or extra).partition(".")[0]
        raise ImportError(f"this adapter needs {package}: pip install 'memstream[{extra}]'", name=package) from error
