"""Exit codes of commands, and errors that print one line with cause and remedy."""

from __future__ import annotations

from enum import IntEnum
from typing import IO, Any, Final

import click

from ..schemas.errors import Fatal, Poison, StageError, Transient

PATIENCE: Final = 60.0
"""Seconds that a command waits for its result."""


class Exit(IntEnum):
    """Exit codes. docs/reference/cli.md has the same table."""

    DONE = 0
    PARTLY = 1
    """Partly done, or a check failed."""
    USAGE = 2
    """Wrong usage or settings, or another process holds the folder."""
    UNREACHABLE = 3
    """A server cannot be reached."""
    BROKEN = 4
    """A broken invariant stopped the worker, or an unexpected error stopped the command."""
    STOPPED = 130
    """Ctrl-C."""


class CommandFailed(click.ClickException):
    """Error that ends the command with `code`. Each line of its message goes to stderr after `memstream: `."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.exit_code = int(code)

    def __str__(self) -> str:
        return self.message

    def show(self, file: IO[Any] | None = None) -> None:
        for line in self.message.splitlines():
            click.echo(f"memstream: {line}", file=file, err=file is None)


def usage(message: str) -> CommandFailed:
    return CommandFailed(Exit.USAGE, message)


def unreachable(error: Transient) -> CommandFailed:
    remedy = f" ({error.remedy})" if error.remedy else ""
    return CommandFailed(Exit.UNREACHABLE, f"{error.component}: {error}{remedy}")


def failed(error: StageError) -> CommandFailed:
    """Return the CommandFailed for an error of a port."""
    match error:
        case Transient():
            return unreachable(error)
        case Poison():
            return CommandFailed(Exit.PARTLY, f"{error.reason}: {error}")
        case Fatal():
            return CommandFailed(Exit.BROKEN, f"{error}{f' ({error.remedy})' if error.remedy else ''}")
    return CommandFailed(Exit.BROKEN, str(error))
