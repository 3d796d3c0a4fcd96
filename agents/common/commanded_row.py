"""The commands that a key has handled, as its row keeps them."""

from __future__ import annotations

import operator
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from ...schemas.commands import Command
from ...streams.log.port import Record
from .handled_until import HandledUntil
from .outcomes import OutcomeRow
from .recent_results import RecentResults
from .seen_ids import SeenIds


class CommandedRow(OutcomeRow):
    """Base of a row whose key takes commands."""

    commands: SeenIds = SeenIds()
    """The last 1 000 command ids."""
    commands_until: Annotated[HandledUntil, Field(exclude_if=operator.not_)] = HandledUntil()
    """Below it redelivered commands are recognised whose ids are forgotten."""
    results: RecentResults = RecentResults()
    """Results of the last edits by hand."""

    def is_redelivered(self, record: Record) -> bool:
        """Return whether this is the record of a command that was handled so long ago that its id may be forgotten."""
        return self.commands_until.has(record)

    def is_new_command(self, command: Command, record: Record) -> bool:
        """Return whether this command was not handled before."""
        return command.command_id not in self.commands and not self.is_redelivered(record)

    def with_command(self, command: Command, record: Record, *, now: datetime) -> Self:
        """Return the row with one more handled command."""
        update = {
            "commands": self.commands.add(command.command_id),
            "commands_until": self.commands_until.add(record, now=now),
        }
        return self.model_copy(update=update)
