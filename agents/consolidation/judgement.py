"""List of an owner's pending facts that wait for a judgement: its changes, its next command, and its report.

Consolidation lists the pending facts of a turn in the owner's row, and sends itself the command `judge`. The step of
this command (steps/pending.py) asks a model, and takes the facts off the list. See docs/design/judgement.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from ...schemas import ids
from ...schemas.facts import StoredFact
from ...schemas.turns import Owner
from ..common.model_call import CallStopped
from .rows import JudgementList, ListedFact, ProgressRow
from .schedule import ScheduledCommand

log = structlog.get_logger(__name__)

JUDGED_SOON_MAX: Final = 100
"""Maximum number of listed facts of an owner, about 60 bytes each. The settle step lists the others later."""
MARKS_KEPT: Final = 128
LONGEST_PAUSE: Final = 3_600.0
"""Longest time in seconds between two questions to an unavailable model."""
LATE: Final = 86_400
"""Seconds after which a listed fact is reported."""


# ------------------------------------------------------------------------------------------------ the list
def mark_of(pending: StoredFact, known: StoredFact) -> str:
    """Return the mark of a pair. A fact with another text makes another pair."""
    return ids.short_hash("/".join((pending.fact_id, pending.content_hash, known.fact_id, known.content_hash)))


def with_listed(row: ProgressRow, fact_ids: Iterable[str], *, run_id: str, now: datetime) -> tuple[ProgressRow, int]:
    """Add pending facts to the list. Return the row, and the number of facts for which the list has no room.

    `run_id`: the id of the run of the event. It becomes the id of a new list.
    """
    known = () if row.judging is None else row.judging.facts
    listed = {each.fact_id for each in known}
    new = [each for each in dict.fromkeys(fact_ids) if each not in listed]
    room = max(0, JUDGED_SOON_MAX - len(known))
    if not new[:room]:
        return row, len(new)
    since = int(now.timestamp())
    facts = (*known, *(ListedFact(fact_id=each, since=since) for each in new[:room]))
    judging = JudgementList(facts=facts, run_id=run_id)
    if row.judging is not None:
        judging = row.judging.model_copy(update={"facts": facts})
    return row.model_copy(update={"judging": judging}), len(new) - len(new[:room])


def with_only(row: ProgressRow, fact_ids: Collection[str]) -> ProgressRow:
    """Return the row whose list has only these facts."""
    if row.judging is None:
        return row
    facts = tuple(each for each in row.judging.facts if each.fact_id in fact_ids)
    judging = row.judging.model_copy(update={"facts": facts}) if facts else None
    return row.model_copy(update={"judging": judging})


def with_asked(row: ProgressRow, pairs: Collection[tuple[StoredFact, StoredFact]]) -> ProgressRow:
    """Take the facts of these pairs off the list and mark the pairs. The next question may follow now."""
    marks = (*row.judged, *(mark_of(pending, known) for pending, known in pairs))[-MARKS_KEPT:]
    row = row.model_copy(update={"judged": marks})
    if row.judging is None:
        return row
    alone = max(0, row.judging.alone - len(pairs))
    row = _tried(row, row.judging, until=None, failures=0, alone=alone, why="")
    asked = {pending.fact_id for pending, _ in pairs}
    return with_only(row, {each.fact_id for each in row.judging.facts} - asked if row.judging else ())


def with_each_alone(row: ProgressRow, pairs: int, *, why: str) -> ProgressRow:
    """Keep the list, and ask the next pairs one at a time."""
    if row.judging is None:
        return row
    return _tried(row, row.judging, until=None, failures=0, alone=pairs, why=why[:300])


def with_stopped(row: ProgressRow, stopped: CallStopped, *, pause: float, now: datetime) -> ProgressRow:
    """Keep the list, and set the time of the next question.

    `pause`: seconds until an unavailable model is asked again. It doubles with each failure, up to `LONGEST_PAUSE`.
    """
    if row.judging is None:
        return row
    failures, seconds = 0, stopped.retry_after or 0.0
    if stopped.status == "deferred":
        before = row.judging.failures
        failures, seconds = before + 1, max(seconds, min(LONGEST_PAUSE, pause * 2.0 ** min(before, 30)))
    until = now + timedelta(seconds=seconds)
    return _tried(row, row.judging, until=until, failures=failures, why=stopped.why[:300])


def _tried(row: ProgressRow, judging: JudgementList, **changes: Any) -> ProgressRow:
    """Return the row after a question about its list. The next command has another id."""
    return row.model_copy(update={"judging": judging.model_copy(update={"attempt": judging.attempt + 1, **changes})})


# ------------------------------------------------------------------------------------------------ the next command
def next_question(row: ProgressRow, owner_key: str, *, now: datetime) -> ScheduledCommand | None:
    """Return the command about the listed facts, or None when no fact is listed."""
    judging = row.judging
    if judging is None:
        return None
    tenant_id, scope, owner_id = ids.split(owner_key)
    return ScheduledCommand(
        command_id=ids.errand_command_id(judging.run_id, "judge", judging.attempt),
        kind="judge",
        tenant_id=tenant_id,
        owner=Owner.model_validate({"scope": scope, "id": owner_id}),
        at=judging.until or now,
        for_model=judging.failures > 0,
    )


# ------------------------------------------------------------------------------------------------ the report
@dataclass(frozen=True, slots=True)
class _Waiting:
    partition: int
    since: tuple[int, ...]
    why: str


class WaitingJudgements:
    """The listed facts of the owners in this worker's partitions. The state is in memory; the rows are authoritative.

    `changed(tenant, by)` updates a metric. `why_unjudged`: the reason why no model may judge; empty when one may.
    """

    def __init__(self, *, changed: Callable[[str, int], None], why_unjudged: str) -> None:
        self._changed = changed
        self._why_unjudged = why_unjudged
        self._owners: dict[str, _Waiting] = {}
        self._logged: dict[str, int] = {}
        """Time of the last log line, by tenant with late facts."""

    def set(self, owner_key: str, partition: int, judging: JudgementList | None) -> None:
        """Set an owner's listed facts, as stored in its row."""
        before = self._owners.pop(owner_key, None)
        after = None
        if judging is not None:
            after = _Waiting(partition, tuple(each.since for each in judging.facts), judging.why)
            self._owners[owner_key] = after
        by = (len(after.since) if after else 0) - (len(before.since) if before else 0)
        if by:
            self._changed(ids.split(owner_key)[0], by)

    def retain(self, partitions: frozenset[int]) -> None:
        """Remove the owners of all other partitions."""
        for key in [key for key, each in self._owners.items() if each.partition not in partitions]:
            self.set(key, self._owners[key].partition, None)

    def report(self, now: datetime) -> str:
        """Return the text about late facts for /readyz; empty when there is none. Log it once a day for each tenant."""
        at = int(now.timestamp())
        late: dict[str, _Late] = {}
        for key, each in self._owners.items():
            facts = sum(since <= at - LATE for since in each.since)
            if facts:
                why = self._why_unjudged or each.why or "they are asked one after the other"
                late.setdefault(ids.split(key)[0], _Late()).add(facts, why)
        self._logged = {tenant_id: logged for tenant_id, logged in self._logged.items() if tenant_id in late}
        total = _Late()
        for tenant_id, of_tenant in late.items():
            total += of_tenant
            if self._logged.get(tenant_id, at - LATE) <= at - LATE:
                self._logged[tenant_id] = at
                log.warning(
                    "judgement_late",
                    tenant_id=tenant_id,
                    facts=of_tenant.facts,
                    owners=of_tenant.owners,
                    why=of_tenant.why,
                )
        if not late:
            return ""
        return f"{total.facts} facts of {total.owners} owners wait longer than a day for a judgement: {total.why}"


@dataclass(slots=True)
class _Late:
    """Listed facts that are late."""

    facts: int = 0
    owners: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, facts: int, why: str) -> None:
        """Add the facts of one owner."""
        self.facts += facts
        self.owners += 1
        self.reasons[why] += facts

    def __iadd__(self, other: _Late) -> _Late:
        self.facts += other.facts
        self.owners += other.owners
        self.reasons += other.reasons
        return self

    @property
    def why(self) -> str:
        """The reason of most of the facts."""
        return self.reasons.most_common(1)[0][0]
