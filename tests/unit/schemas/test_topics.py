"""The topic catalogue against a written-out table."""

from __future__ import annotations

import pytest

from memstream.schemas import topics
from memstream.schemas.topics import STAGES, catalogue

DAY = 24 * 60 * 60 * 1000
EXPECTED = {
    "memory.turns": ("session", "delete", 30),
    "memory.commands.session": ("session", "delete", 7),
    "memory.observations": ("owner", "delete", 7),
    "memory.commands": ("owner", "delete", 7),
    "memory.episodes.recorded": ("owner", "delete", 7),
    "memory.recalled": ("owner", "delete", 1),
    "memory.tasks.due": ("owner", "delete", 7),
    "memory.facts.updated": ("owner", "delete", 30),
    "memory.facts": ("tenant/fact_id", "compact", None),
    "memory.commands.results": ("command id", "delete", 1),
    "memory.policies": ("tenant", "compact", None),
    "memory.erasures": ("user hash, or receipt", "compact", None),
    "memory.audit": ("tenant or none", "delete", 365),
}
READ = {
    "recorder": {"memory.turns"},
    "observer": {"memory.turns", "memory.commands.session"},
    "reflector": {"memory.observations", "memory.commands"},
    "consolidation": {"memory.episodes.recorded", "memory.commands", "memory.recalled"},
}
LETTERS = {f"{name}.dlq" for names in READ.values() for name in names}
CHANGELOGS = {
    "memory-observer-working_set-changelog",
    "memory-reflector-ledger-changelog",
    "memory-consolidation-progress-changelog",
}


def test_the_first_versions_topics_and_no_others() -> None:
    assert {t.name: (t.key, t.clean_up, t.retention_days) for t in topics.TOPICS} == EXPECTED
    assert {t.name for t in catalogue()} == set(EXPECTED) | LETTERS | CHANGELOGS | {"memory-parked"}
    assert len(catalogue()) == len({t.name for t in catalogue()})


@pytest.mark.parametrize("stage", STAGES)
def test_what_each_stage_reads(stage: topics.StageName) -> None:
    assert {t.name for t in topics.read_by(stage)} == READ[stage]
    assert topics.group_of(stage) == f"memory-{stage}"


def test_settings_are_kafkas() -> None:
    by_name = {t.name: t.settings() for t in catalogue()}
    assert by_name["memory.turns"] == {"cleanup.policy": "delete", "retention.ms": str(30 * DAY)}
    assert by_name["memory.facts"] == {"cleanup.policy": "compact", "max.compaction.lag.ms": str(7 * DAY)}
    assert by_name["memory.turns.dlq"] == {
        "cleanup.policy": "delete",
        "retention.ms": str(30 * DAY),
        "max.message.bytes": str(4 * 1024 * 1024),
    }
    assert by_name["memory-observer-working_set-changelog"] == {
        "cleanup.policy": "compact",
        "max.message.bytes": str(4 * 1024 * 1024),
        "min.compaction.lag.ms": str(DAY),
        "max.compaction.lag.ms": str(7 * DAY),
        "compression.type": "zstd",
    }


@pytest.mark.parametrize(("default", "letters", "work"), [(12, 3, 12), (1, 1, 1), (2, 3, 2)])
def test_partition_counts(default: int, letters: int, work: int) -> None:
    for topic in catalogue():
        expected = (
            1
            if topic.name in ("memory.policies", "memory.erasures", "memory.audit", "memory-parked")
            else letters
            if topic.name in LETTERS
            else work
        )
        assert topics.partitions_of(topic, default=default) == expected
