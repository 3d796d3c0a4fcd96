"""Operator's function that chooses the text of a turn for the model (`[memory.capture] source`)."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from ...memory.language.clean_text import clean_text
from ...memory.secrets.secret_filter import SecretFilter
from ...schemas.errors import Fatal
from ...schemas.turns import Turn

TurnSource = Callable[[Turn], str | None]
SOURCE_MAX = 256 * 1024
"""Maximum number of code points of the function's text, equal to the maximum size of a turn in bytes."""


def load_source(name: str) -> TurnSource:
    """Import `package.module:function`. Raises ValueError with the name when the function does not exist."""
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


def without_secrets(source: TurnSource, secrets: SecretFilter) -> TurnSource:
    """Return the source with its output masked. The function may read other data than the given turn."""

    def protected(turn: Turn) -> str | None:
        text = source(turn)
        return secrets.mask(clean_text(text)) if isinstance(text, str) else text

    return protected


def text_of(turn: Turn, source: TurnSource) -> str:
    """Return the text to show; an empty text shows nothing.

    Raises Fatal when the function returns no string: then the function is wrong, not the turn.
    """
    text = source(turn)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise Fatal(f"memory.capture.source answered {type(text).__name__}, not str or None")
    return text[:SOURCE_MAX]
