"""Output of commands for the result of an edit."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue
from rich.markup import escape

from ...tools.editor import EditAnswer
from ..errors import PATIENCE, CommandFailed, Exit
from . import console


def tell(answer: EditAnswer, *, as_json: bool) -> None:
    """Print the result of an edit: one line for people, or one JSON object.

    Raises CommandFailed (exit 1) if there is no result in time.
    """
    result = None if answer.result is None else answer.result.to_payload()
    if as_json:
        status = "accepted" if result is None else "applied"
        console.line({"command_id": answer.command_id, "status": status, **(result or {})})
    elif result is not None:
        _show(result)
    if result is None:
        message = f"no result within {PATIENCE:.0f} s; the command {answer.command_id} waits in the log"
        raise CommandFailed(Exit.PARTLY, message)


def _show(result: Mapping[str, JsonValue]) -> None:
    """Print the plain fields in one line, and below it one line for each nested record."""
    given = {name: value for name, value in result.items() if value not in (None, "", [], {})}
    plain = {name: value for name, value in given.items() if not isinstance(value, dict)}
    if plain:
        console.wrapped(_fields(plain))
    for name, value in given.items():
        if isinstance(value, dict):
            shown = {key: each for key, each in value.items() if each not in (None, "", [], {})}
            console.wrapped(escape(f"{name}: "), _fields(shown))


def _fields(fields: Mapping[str, JsonValue]) -> str:
    return escape(console.printable("  ".join(f"{name}: {_shown(value)}" for name, value in fields.items())))


def _shown(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, dict):
        return " ".join(f"{name} {_shown(each)}" for name, each in value.items() if each is not None)
    if isinstance(value, list):
        return ", ".join(_shown(each) for each in value)
    return str(value)
