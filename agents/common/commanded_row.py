"""Base class of rows that remember the commands handled for a key."""

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
    """Base of a row whose key receives commands."""

    commands: SeenIds = SeenIds()
    """The last 1 000 command ids."""
    commands_until: Annotated[HandledUntil, Field(exclude_if=operator.not_)] = HandledUntil()
    """Marks that recognise redelivered commands after `commands` has dropped their ids."""
    results: RecentResults = RecentResults()
    """Results of the last manual edits."""

    def is_redelivered(self, record: Record) -> bool:
        """Return whether the record's offset shows that it was handled before. Its id may no longer be stored."""
        return self.commands_until.has(record)

    def is_new_command(self, command: Command, record: Record) -> bool:
        """Return whether this command was not handled before."""
        return command.command_id not in self.commands and not self.is_redelivered(record)

    def with_command(self, command: Command, record: Record, *, now: datetime) -> Self:
        """Return the row with this command marked as handled."""
        update = {
            "commands": self.commands.add(command.command_id),
            "commands_until": self.commands_until.add(record, now=now),
        }
        return self.model_copy(update=update)
