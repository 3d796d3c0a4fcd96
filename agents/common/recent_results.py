"""Results of a key's last edits. A command that is sent again gets the result that it got before."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from ...schemas.commands import KEY_REUSED, Command, CommandResult, ResultError, is_other_request
from .stored_row import RowPart

RESULTS_KEPT: Final = 16
RESULTS_MAX_CHARACTERS: Final = 16_384
"""Characters of the results that a row keeps together."""


class RecentResults(RowPart):
    """The last results, oldest first, as JSON."""

    kept: tuple[str, ...] = ()

    def add(self, result: CommandResult) -> RecentResults:
        """Return these results with a new one. The oldest leave, and one that is too long is not kept."""
        kept = (*self.kept, result.model_dump_json())[-RESULTS_KEPT:]
        while kept and sum(map(len, kept)) > RESULTS_MAX_CHARACTERS:
            kept = kept[1:]
        return RecentResults(kept=kept)

    def again(self, command: Command) -> CommandResult:
        """Return the result of a command that was handled before, as it was.

        Refuse another request under the same id, and a command whose result is no longer kept.
        """
        for each in reversed(self.kept):
            try:
                result = CommandResult.read(each)
            except ValidationError:
                continue
            if result.command_id == command.command_id:
                return _refused(command, KEY_REUSED) if is_other_request(result, command) else result
        message = "this command was handled before; its result is no longer kept. Read the record that it names"
        return _refused(command, ResultError(code="repeated", message=message))


def _refused(command: Command, error: ResultError) -> CommandResult:
    return CommandResult(
        command_id=command.command_id,
        status="refused",
        error=error,
        at=command.issued_at,
        request_hash=command.request_hash,
    )
