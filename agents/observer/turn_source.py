"""An operator's own function that says what of a turn is shown to the model (`[memory.capture] source`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from ...schemas.errors import Fatal
from ...schemas.turns import Turn

TurnSource = Callable[[Turn], str | None]
SOURCE_MAX = 256 * 1024
"""Code points that are shown of its answer; a turn has no more bytes."""


def load_source(name: str) -> TurnSource:
    """`package.module:function`. Raises ValueError when there is no such function; the message names it."""
    module_name, _, function_name = name.partition(":")
    try:
        found = getattr(import_module(module_name), function_name)
    except ImportError as error:
        raise ValueError(f"memory.capture.source = {name!r}: {error}") from error
    except AttributeError as error:
        raise ValueError(f"memory.capture.source = {name!r}: {module_name} has no {function_name}") from error
    if not callable(found):
        raise ValueError(f"memory.capture.source = {name!r}: it is no function")
    return cast(TurnSource, found)


def text_of(turn: Turn, source: TurnSource) -> str:
    """What is shown of the turn; empty: nothing. Raises Fatal for an answer that is no text: the function is wrong, no
    turn is to blame."""
    text = source(turn)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise Fatal(f"memory.capture.source answered {type(text).__name__}, not str or None")
    return text[:SOURCE_MAX]
