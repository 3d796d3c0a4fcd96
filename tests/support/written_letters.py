"""Dead letters and parked keys in a log, as stages write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from memstream.schemas import ids
from memstream.schemas.errors import DeadLetterReason, Poison
from memstream.schemas.parking import ParkedKey
from memstream.schemas.topics import PARKED, TURNS
from memstream.streams.engine.dead_letters import dead_letter
from memstream.streams.engine.parking import parked_record
from memstream.streams.log.port import Headers, Log, Position, Record

AT = 1_795_168_800_000


async def refused_turn(
    log: Log,
    turn: str = "t1",
    *,
    tenant: str = "acme",
    user: str = "u1",
    text: str = "I work at Stripe",
    value: bytes | None = None,
    message: str = "no usable answer",
    reason: DeadLetterReason = "refused_by_model",
    stage: str = "observer",
    headers: Headers = (),
    at: int | None = None,
) -> Position:
    """Append a turn and its dead letter; return the position of the letter. `at`: the time of the refusal."""
    key = ids.session_key(tenant, user, "s1").encode()
    named: dict[str, Any] = {"tenant_id": tenant, "user_id": user, "session_id": "s1", "turn_id": turn}
    raw = json.dumps(named | {"messages": [{"role": "user", "content": text}]}).encode() if value is None else value
    place = await log.append(TURNS.name, key=key, value=raw, headers=headers, timestamp=AT)
    record = Record(place, key, raw, headers, AT)
    out = dead_letter(record, stage=stage, reason=reason, error=Poison(reason, message), attempts=3)
    return await log.append(out.topic, key=out.key, value=out.value, headers=out.headers, timestamp=at)


async def park(log: Log, *, tenant: str = "acme", user: str = "u1", error: str = "the store refuses it") -> None:
    """Write the entry of a reflector's row of a user."""
    entry = ParkedKey(
        stage="reflector",
        key=ids.owner_key(tenant, "user", user),
        topic="memory.observations",
        partition=0,
        offset=7,
        event_id="e1",
        parked_at=datetime.fromtimestamp(AT / 1000, UTC),
        error=error,
    )
    out = parked_record(entry)
    assert out.topic == PARKED.name
    await log.append(out.topic, key=out.key, value=out.value)
