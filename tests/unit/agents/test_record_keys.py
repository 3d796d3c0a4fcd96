"""Key and value of a record name the same owner or session, on every topic that a stage reads and that is no turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from memstream.agents.consolidation import events as consolidation
from memstream.agents.observer import events as observer
from memstream.agents.reflector import events as reflector
from memstream.memory.policies import MemoryPolicy
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.schemas.errors import Poison
from memstream.schemas.topics import (
    COMMANDS,
    COMMANDS_SESSION,
    EPISODES_RECORDED,
    OBSERVATIONS,
    RECALLED,
    STAGES,
    TURNS,
    read_by,
)
from memstream.streams.log.port import Position, Record

AT = datetime(2026, 11, 20, 10, tzinfo=UTC).isoformat()
OWNER = {"tenant_id": "other", "owner": {"scope": "user", "id": "victim"}}
SECRETS = SecretFilter()
NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
COMMAND = {"command_id": "c1", "kind": "facts.remember", "issued_by": "cli:root", "issued_at": AT}
TURN = {"user_id": "victim", "session_id": "s1", "turn_id": "t1", "occurred_at": AT, "turn_number": 1}
VALUES: Mapping[str, Mapping[str, Any]] = {
    COMMANDS.name: OWNER | COMMAND,
    COMMANDS_SESSION.name: COMMAND
    | {"tenant_id": "other", "session": {"user_id": "victim", "session_id": "s1"}, "kind": "working.add"},
    OBSERVATIONS.name: OWNER | TURN,
    EPISODES_RECORDED.name: OWNER | TURN,
    RECALLED.name: OWNER | {"recall_id": "r1", "at": AT, "items": [{"tier": "semantic", "id": "f1", "rank": 0}]},
}
ROUTES: Mapping[str, Callable[[Record], object]] = {
    "observer": lambda record: observer.route_event(record, MemoryPolicy().routing, SECRETS, now=NOW, partitions=1),
    "reflector": lambda record: reflector.route_event(record, partitions=1, secrets=SECRETS),
    "consolidation": lambda record: consolidation.route_event(record, partitions=1, secrets=SECRETS),
}
READ = [(stage, topic.name) for stage in STAGES for topic in read_by(stage) if topic is not TURNS]


def keyed(topic: str, key: bytes | None) -> Record:
    return Record(Position(topic, 0, 0), key, json.dumps(VALUES[topic]).encode())


@pytest.mark.parametrize(("stage", "topic"), READ)
def test_a_record_under_the_key_of_somebody_else_is_refused(stage: str, topic: str) -> None:
    right = b"other/victim/s1" if topic == COMMANDS_SESSION.name else b"other/user/victim"
    ROUTES[stage](keyed(topic, right))
    for foreign in (b"t/user/u", b"other/user/u", b"t/victim/s1", b"other/victim/s2", b"", None):
        with pytest.raises(Poison, match="names another owner or session") as refused:
            ROUTES[stage](keyed(topic, foreign))
        assert refused.value.reason == "invalid"
