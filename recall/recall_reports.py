"""Reader of the answers that contained a record lately, from memory.recalled."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from ..schemas.recall import RecallReport
from ..schemas.topics import RECALLED
from ..schemas.turns import Owner
from ..streams.log.port import Log, Record
from .bounded_log_reads import NEWEST, BoundedLogReads, FormerCounts, LogPolicy
from .deadline import UnansweredPart

SHOWN = 5
POLICY = LogPolicy(records=NEWEST, seconds=5.0)


@dataclass(frozen=True, slots=True)
class AnswerWithRecord:
    """An answer that contained the record, at `place`, counted from 1."""

    at: datetime
    asked_by: str
    place: int


@dataclass(frozen=True, slots=True)
class LatestAnswers:
    """The latest answers that contained a record, newest first."""

    answers: tuple[AnswerWithRecord, ...]
    missing: tuple[UnansweredPart, ...] = ()


class RecallReports:
    """The reader. It reads the newest 1 000 records of the owner's partition, so older answers are not found."""

    def __init__(self, *, log: Log) -> None:
        self._log = log
        self._former = FormerCounts(log)

    async def latest(self, tenant_id: str, owner: Owner, record_id: str, *, limit: int = SHOWN) -> LatestAnswers:
        reads = BoundedLogReads(self._log, POLICY, self._former)
        found: dict[str, AnswerWithRecord] = {}

        def take(record: Record) -> bool:
            if (report := _read(record)) is not None:
                for each in report.items:
                    if each.id == record_id:
                        found[report.recall_id] = AnswerWithRecord(report.at, report.asked_by, each.rank + 1)
            return False

        key = owner.key(tenant_id).encode()
        await reads.newest_of_key("recalls", RECALLED.name, key, take=take, found=lambda: True)
        newest = sorted(found.values(), key=lambda each: each.at, reverse=True)
        return LatestAnswers(tuple(newest[:limit]), tuple(reads.missing))


def _read(record: Record) -> RecallReport | None:
    """Decode a record. Return None when memstream did not write it."""
    try:
        return RecallReport.read(record.value or b"")
    except ValidationError:
        return None
