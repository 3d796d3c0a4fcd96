"""Results of a key's last edits. A command that arrives again gets its stored result."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from ...schemas.commands import KEY_REUSED, REPEATED, Command, CommandResult, RequestHash, ResultError
from .stored_row import RowPart

RESULTS_KEPT: Final = 16
RESULTS_MAX_CHARACTERS: Final = 16_384
"""Total number of result characters that a row keeps."""


class KeptResult(CommandResult):
    """A stored result with the hash of its request."""

    request_hash: RequestHash = None

    def is_of_another(self, command: Command) -> bool:
        """Return whether the command has the same id but other arguments than the stored request."""
        return None not in (self.request_hash, command.request_hash) and self.request_hash != command.request_hash

    def plain(self) -> CommandResult:
        return CommandResult(**{name: getattr(self, name) for name in CommandResult.model_fields})


class RecentResults(RowPart):
    """The last results, oldest first, as JSON."""

    kept: tuple[str, ...] = ()

    def add(self, result: CommandResult, *, of: Command | None = None) -> RecentResults:
        """Return the results with a new result. The oldest results are dropped until the limits hold.

        A result longer than `RESULTS_MAX_CHARACTERS` is not kept.
        """
        new = KeptResult(**dict(result), request_hash=None if of is None else of.request_hash)
        kept = (*self.kept, new.model_dump_json())[-RESULTS_KEPT:]
        while kept and sum(map(len, kept)) > RESULTS_MAX_CHARACTERS:
            kept = kept[1:]
        return RecentResults(kept=kept)

    def again(self, command: Command) -> CommandResult:
        """Return the stored result of a command that was handled before.

        Refuse a command whose id belongs to another request, and a command whose result is no longer kept.
        """
        for each in reversed(self.kept):
            try:
                kept = KeptResult.read(each)
            except ValidationError:
                continue
            if kept.command_id == command.command_id:
                return _refused(command, KEY_REUSED) if kept.is_of_another(command) else kept.plain()
        message = "this command was handled before; its result is no longer kept. Read the record that it names"
        return _refused(command, ResultError(code=REPEATED, message=message))


def _refused(command: Command, error: ResultError) -> CommandResult:
    return CommandResult(
        command_id=command.command_id,
        status="refused",
        error=error,
        at=command.issued_at,
    )
