"""What commands print of an edit."""

from __future__ import annotations

import click
from pydantic import JsonValue

from ...tools.editor import EditAnswer
from ..errors import CommandFailed, Exit
from ..wiring.command_runs import PATIENCE
from . import console


def tell(answer: EditAnswer, *, as_json: bool) -> None:
    """Print the result of an edit: one line for people, or one JSON object. CommandFailed (exit 1): it did not come in
    time."""
    result = None if answer.result is None else answer.result.to_payload()
    if as_json:
        status = "accepted" if result is None else "applied"
        console.line({"command_id": answer.command_id, "status": status, **(result or {})})
    elif result is not None:
        click.echo(
            "  ".join(f"{name}: {_shown(value)}" for name, value in result.items() if value not in (None, "", []))
        )
    if result is None:
        message = f"no result within {PATIENCE:.0f} s; the command {answer.command_id} waits in the log"
        raise CommandFailed(Exit.PARTLY, message)


def _shown(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(_shown(each) for each in value.values() if each is not None)
    if isinstance(value, list):
        return ", ".join(_shown(each) for each in value)
    return str(value)
