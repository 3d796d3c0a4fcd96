"""Progress of an import, in the file `PATH.import` next to the imported file. A command that is killed continues."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from ...schemas.imports import ImportReport
from . import console

STATE_MAX = 4 * 1024 * 1024


@dataclass(slots=True)
class ImportState:
    """The lines that are imported, and their result. `source`: the name of the import."""

    path: Path
    source: str
    end: int = 0
    line: int = 0
    report: ImportReport = field(default_factory=ImportReport)
    _kept: bool = True

    @classmethod
    def of(cls, file: Path, source: str, size: int) -> Self:
        """Read the state of an earlier, interrupted run of the same import, or begin. `size`: size of the source."""
        path = file.with_name(f"{file.name}.import")
        state = cls(path, source)
        try:
            known = json.loads(path.read_bytes()[:STATE_MAX])
            if known["source"] == source and 0 <= known["end"] <= size:
                state.end, state.line = int(known["end"]), int(known["line"])
                state.report = ImportReport.from_payload(known["report"])
        except (OSError, ValueError, KeyError, TypeError, ValidationError):
            pass  # without a usable state the import begins again: records that memory has are skipped
        return state

    def note(self, *, end: int, line: int, report: ImportReport) -> None:
        """Write that the lines up to this offset are imported."""
        self.end, self.line, self.report = end, line, report
        if not self._kept:
            return
        known: dict[str, Any] = {"source": self.source, "end": end, "line": line, "report": report.to_payload()}
        fresh = self.path.with_name(f"{self.path.name}.new")
        try:
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
                file.write(json.dumps(known).encode())
            fresh.replace(self.path)
        except OSError as error:
            self._kept = False
            console.advice(f"the progress is not kept: {self.path}: {error.strerror or error}")

    def finish(self) -> None:
        self.path.unlink(missing_ok=True)
