"""`memstream doctor` tells of turns that were passed over because too many of their tenant waited."""

from __future__ import annotations

import time
from pathlib import Path

from memstream.cli.commands.doctor import _passed_over
from memstream.schemas.errors import DeadLetterReason, Poison
from memstream.schemas.topics import TURNS, catalogue
from memstream.streams.engine.dead_letters import dead_letter
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import Position, Record, TopicSpec

DAY_MS = 86_400_000
LETTERS = TURNS.name + ".dlq"


async def write(log: EmbeddedLog, reason: DeadLetterReason, tenant: str, *, ago: int = 0) -> None:
    at = round(time.time() * 1000) - ago
    value = f'{{"tenant_id": "{tenant}"}}'.encode()
    record = Record(position=Position(TURNS.name, 0, 1), key=b"k", value=value, timestamp=at)
    letter = dead_letter(record, stage="observer", reason=reason, error=Poison(reason, "why"), attempts=1)
    await log.append(letter.topic, key=letter.key, value=letter.value, headers=letter.headers, timestamp=at)


async def test_letters_of_the_last_day_are_told_by_tenant(tmp_path: Path) -> None:
    log = EmbeddedLog(folder=tmp_path / "log")
    await log.start()
    try:
        assert (await _passed_over(log)).ok  # no such topic yet
        [topic] = [each for each in catalogue() if each.name == LETTERS]
        await log.create([TopicSpec(topic.name, 3, 1, topic.settings())])
        await write(log, "over_ceiling", "old", ago=2 * DAY_MS)
        await write(log, "refused_by_model", "acme")
        assert (await _passed_over(log)).ok
        for tenant in ("acme", "acme", "globex"):
            await write(log, "over_ceiling", tenant)
        check = await _passed_over(log)
    finally:
        await log.close()
    assert not check.ok
    assert check.detail == "3 turns of 2 tenants were passed over in the last day: acme 2, globex 1"
    assert "dlq redrive --reason over_ceiling" in check.fix
