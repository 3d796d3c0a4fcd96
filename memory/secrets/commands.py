"""Removal of secrets from a command, for senders and for stages."""

from __future__ import annotations

from ...schemas.command_kinds import ERASING
from ...schemas.commands import Command
from ..language.clean_text import clean_value
from .secret_filter import SecretFilter


def protect_command(command: Command, secrets: SecretFilter) -> Command:
    """Return the command with masked secrets and without invisible characters in its arguments. A text that the policy
    drops becomes empty, and the command is then refused by the rules of its kind."""
    if command.kind in ERASING:  # its arguments are ids and keys of rows, which must stay exact
        return command
    args = secrets.value(clean_value(command.args)).value
    kind, issued_by = secrets.mask(command.kind)[:64] or "-", secrets.mask(command.issued_by)[:128]
    if (args, kind, issued_by) == (command.args, command.kind, command.issued_by):
        return command
    return command.model_copy(update={"args": args, "kind": kind, "issued_by": issued_by})
