"""Adapters for agent frameworks: `openai_agents`, `langgraph`, `llama_index`, `pydantic_ai`.

Each adapter has one module and one extra of the package; only this module imports the framework. An adapter reads and
writes memory only through the client. See docs/design/frameworks.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def framework(extra: str) -> Iterator[None]:
    """Raise ImportError, which names the extra to install, if a module of a framework is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or extra).partition(".")[0]
        raise ImportError(f"this adapter needs {package}: pip install 'memstream[{extra}]'", name=package) from error
