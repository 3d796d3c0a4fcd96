"""Topic catalogue as data: names, keys, layouts, readers and writers (docs/reference/topics.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

StageName = Literal["recorder", "observer", "reflector", "consolidation"]
STAGES: tuple[StageName, ...] = ("recorder", "observer", "reflector", "consolidation")
CleanUp = Literal["delete", "compact"]

_DAY_MS = 24 * 60 * 60 * 1000
COMPACTED = (("max.compaction.lag.ms", str(7 * _DAY_MS)),)
"""Setting of compacted topics with data of users: without it, a topic keeps an erased record until it has enough other
records (docs/design/erasure.md)."""
LARGE_MESSAGE_BYTES = 4 * 1024 * 1024
"""`max.message.bytes` of changelogs and dead-letter topics, and the producer's largest request."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic. `partitions` overrides the partition count of the deployment."""

    name: str
    key: str
    clean_up: CleanUp
    retention_days: int | None
    written_by: tuple[str, ...]
    read_by: tuple[str, ...]
    partitions: int | None = None
    """None: the deployment's count (12 on Kafka, 1 embedded)."""
    large: bool = False
    config: tuple[tuple[str, str], ...] = field(default=())

    def settings(self) -> dict[str, str]:
        """Return the Kafka settings of the topic."""
        settings: dict[str, str] = {"cleanup.policy": self.clean_up}
        if self.retention_days is not None and self.clean_up == "delete":
            settings["retention.ms"] = str(self.retention_days * _DAY_MS)
        if self.large:
            settings["max.message.bytes"] = str(LARGE_MESSAGE_BYTES)
        return settings | dict(self.config)


TURNS = Topic("memory.turns", "session", "delete", 30, ("chat services", "observer"), ("recorder", "observer"))
COMMANDS_SESSION = Topic("memory.commands.session", "session", "delete", 7, ("tools", "observer"), ("observer",))
OBSERVATIONS = Topic("memory.observations", "owner", "delete", 7, ("observer",), ("reflector",))
COMMANDS = Topic(
    "memory.commands",
    "owner",
    "delete",
    7,
    ("tools", "observer", "reflector", "consolidation"),
    ("reflector", "consolidation"),
)
EPISODES_RECORDED = Topic("memory.episodes.recorded", "owner", "delete", 7, ("reflector",), ("consolidation",))
FACTS_UPDATED = Topic("memory.facts.updated", "owner", "delete", 30, ("reflector",), ("anyone",))
FACTS = Topic("memory.facts", "tenant/fact_id", "compact", None, ("reflector",), ("anyone",), config=COMPACTED)
TASKS_DUE = Topic("memory.tasks.due", "owner", "delete", 7, ("reflector",), ("anyone",))
RECALLED = Topic("memory.recalled", "owner", "delete", 1, ("recall",), ("consolidation",))
RESULTS = Topic(
    "memory.commands.results", "command id", "delete", 1, ("observer", "reflector", "consolidation"), ("tools",)
)
AUDIT_TRAIL = Topic("memory.audit", "tenant or none", "delete", 365, ("audited programs",), ("auditors",), partitions=1)
POLICIES = Topic("memory.policies", "tenant", "compact", None, ("operators",), ("every process",), partitions=1)
ERASURES = Topic(
    "memory.erasures",
    "user hash, or receipt",
    "compact",
    None,
    ("operators",),
    ("every process",),
    partitions=1,
    config=COMPACTED,
)

TOPICS: tuple[Topic, ...] = (
    TURNS,
    COMMANDS_SESSION,
    OBSERVATIONS,
    COMMANDS,
    EPISODES_RECORDED,
    RECALLED,
    FACTS_UPDATED,
    FACTS,
    TASKS_DUE,
    RESULTS,
    POLICIES,
    ERASURES,
    AUDIT_TRAIL,
)
BY_NAME: dict[str, Topic] = {topic.name: topic for topic in TOPICS}

PARKED = Topic("memory-parked", "stage/table key", "compact", None, STAGES, STAGES, partitions=1, config=COMPACTED)
"""Topic of parked keys, whose last outcome cannot be applied, and of records that ended workers. Only stages read and
write this topic."""

DEAD_LETTER_SUFFIX = ".dlq"


def read_by(stage: StageName) -> tuple[Topic, ...]:
    """Return the topics that a stage consumes, with one consumer group and equal partition counts."""
    return tuple(topic for topic in TOPICS if stage in topic.read_by)


def dead_letters_of(topic: Topic) -> Topic:
    return Topic(
        topic.name + DEAD_LETTER_SUFFIX,
        "as it came",
        "delete",
        30,
        topic.read_by,
        ("operators",),
        partitions=3,
        large=True,
    )


def group_of(stage: str) -> str:
    """Return the consumer group and Faust app id of a stage."""
    return f"memory-{stage}"


TABLES: dict[StageName, str] = {"observer": "working_set", "reflector": "ledger", "consolidation": "progress"}


def changelog_name(stage: str, table: str) -> str:
    return f"{group_of(stage)}-{table}-changelog"


def changelog_of(stage: StageName) -> Topic | None:
    """Return the changelog topic of a stage's table. It has as many partitions as the stage's source topics."""
    table = TABLES.get(stage)
    if table is None:
        return None
    return Topic(
        changelog_name(stage, table),
        "table key",
        "compact",
        None,
        (stage,),
        (stage,),
        large=True,
        config=(("min.compaction.lag.ms", str(_DAY_MS)), *COMPACTED, ("compression.type", "zstd")),
    )


def catalogue() -> tuple[Topic, ...]:
    """Return every topic of this version: work topics, their dead letters, the changelogs and the topic of parked
    keys."""
    dead_letters = tuple(dead_letters_of(topic) for topic in TOPICS if set(topic.read_by) & set(STAGES))
    changelogs = tuple(topic for stage in STAGES if (topic := changelog_of(stage)) is not None)
    return TOPICS + dead_letters + changelogs + (PARKED,)


def partitions_of(topic: Topic, *, default: int) -> int:
    """Return the partition count of a topic in a deployment with the count `default`. If `default` is 1 (embedded),
    every topic has one partition."""
    return topic.partitions if topic.partitions is not None and default > 1 else default
