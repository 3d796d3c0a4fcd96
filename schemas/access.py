"""Rights of each role at the broker, as data: who may produce, consume and create which topics.

`memstream topics acls` prints them, docs/reference/topics.md has them as a table, and the test broker grants exactly
these rights and denies everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from .topics import (
    COMMANDS,
    COMMANDS_SESSION,
    ERASURES,
    FACTS,
    FACTS_UPDATED,
    OBSERVATIONS,
    PARKED,
    POLICIES,
    RECALLED,
    RESULTS,
    STAGES,
    TOPICS,
    TURNS,
    StageName,
    Topic,
    catalogue,
    changelog_of,
    dead_letters_of,
    group_of,
    read_by,
)

Operation = Literal["Read", "Write", "Describe", "DescribeConfigs", "Create", "Alter"]
Resource = Literal["topic", "group"]
CLOCK_TOPIC: Final = "memory-clock"
"""Topic with which `memstream doctor` compares this machine's clock with the broker's."""
OPERATOR: Final = "operator"


@dataclass(frozen=True, slots=True)
class Acl:
    """The operations that a role may do on one topic or consumer group with exactly this name."""

    resource: Resource
    name: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """Rights of one role. `groups` are the consumer groups in which it reads, or whose offsets it commits."""

    role: str
    produces: tuple[Topic, ...]
    consumes: tuple[Topic, ...]
    groups: tuple[str, ...] = ()
    checks: tuple[Topic, ...] = ()
    """Topics whose layout and settings it reads."""
    creates: tuple[str, ...] = ()
    """Names of the topics that it creates, and to which it adds partitions."""
    watches: tuple[str, ...] = ()
    """Consumer groups whose members and committed offsets it reads. It cannot commit offsets."""

    def acls(self) -> tuple[Acl, ...]:
        """Return the operations for each topic and group, by name."""
        of_topic: dict[str, set[Operation]] = {}
        granted: tuple[tuple[Operation, Sequence[str]], ...] = (
            ("Write", [topic.name for topic in self.produces]),
            ("Read", [topic.name for topic in self.consumes]),
            ("DescribeConfigs", [topic.name for topic in self.checks]),
            ("Create", self.creates),
            ("Alter", self.creates),
            ("Write", self.creates),
        )
        for operation, names in granted:
            for name in names:
                of_topic.setdefault(name, {"Describe"}).add(operation)
        topics = tuple(Acl("topic", name, tuple(sorted(found))) for name, found in sorted(of_topic.items()))
        own = tuple(Acl("group", name, ("Describe", "Read")) for name in self.groups)
        return topics + own + tuple(Acl("group", name, ("Describe",)) for name in self.watches)


CLIENT_ROLES: Final[dict[str, tuple[str, ...]]] = {
    "chat-service": ("chat services",),
    "subscriber": ("anyone",),
    "command-sender": ("tools",),
    "auditor": ("auditors",),
}
"""The names of readers and writers in the catalogue, by role."""
SERVED: Final = ("chat services", "tools", "recall", "audited programs", "auditors")
"""The names of `memstream serve` in the catalogue."""
TRACED: Final[tuple[Topic, ...]] = (TURNS, dead_letters_of(TURNS), OBSERVATIONS, FACTS_UPDATED, FACTS, RECALLED)
"""Additional topics that `memstream serve` reads, to show the origin and changes of a fact, who recalled it, and what
became of a turn."""
GROUPS: Final = tuple(map(group_of, STAGES))
CHANGELOGS: Final = tuple(topic for stage in STAGES if (topic := changelog_of(stage)) is not None)


def accesses() -> tuple[Access, ...]:
    """Return the minimum rights of each role: the stages, then the clients, then the operator."""
    clients = (_access_of_client(role, *names) for role, names in CLIENT_ROLES.items())
    servers = (_access_of_serve(), _access_of_eraser(), _access_of_redriver())
    return (*map(_access_of_stage, STAGES), *clients, *servers, _access_of_operator())


def _access_of_stage(stage: StageName) -> Access:
    reads = read_by(stage)
    changelog = changelog_of(stage)
    own = (*((changelog,) if changelog is not None else ()), PARKED)
    writes = tuple(topic for topic in TOPICS if stage in topic.written_by)
    # at start, the stages that use the facts compare the store with this topic
    state = (FACTS,) if stage in ("reflector", "consolidation") else ()
    return Access(
        stage,
        (*writes, *map(dead_letters_of, reads), *own),
        (*reads, *own, POLICIES, ERASURES, *state),
        groups=(group_of(stage),),
        checks=catalogue(),
    )


def _access_of_client(role: str, *names: str) -> Access:
    produces = tuple(topic for topic in TOPICS if {*names} & {*topic.written_by})
    consumes = tuple(topic for topic in TOPICS if {*names} & {*topic.read_by})
    return Access(role, produces, consumes)


def _access_of_serve() -> Access:
    """Return the rights of `memstream serve`. The changelogs have the former partition counts, by which a trace finds
    records from before a growth."""
    client = _access_of_client("serve", *SERVED)
    return replace(
        client,
        consumes=(*client.consumes, *TRACED, POLICIES, ERASURES, *CHANGELOGS),
        checks=catalogue(),
        watches=GROUPS,
    )


def _access_of_eraser() -> Access:
    """Return the rights to erase users: `memstream serve` needs them besides its own for /v1/erasures."""
    return Access(
        "eraser",
        (COMMANDS, COMMANDS_SESSION, ERASURES),
        (ERASURES, RESULTS, FACTS, PARKED, *CHANGELOGS),
        checks=catalogue(),
        watches=GROUPS,
    )


def _access_of_redriver() -> Access:
    """Return the rights to list dead letters and parked keys and to put letters back: `memstream serve` needs them
    besides its own for /v1/dead-letters and /v1/parked-keys."""
    work = tuple(dict.fromkeys(topic for stage in STAGES for topic in read_by(stage)))
    return Access("redriver", work, (*map(dead_letters_of, work), *work, PARKED, ERASURES))


def _access_of_operator() -> Access:
    """Return the rights of a person at the command line: every command, on every topic."""
    everything = catalogue()
    return Access(
        OPERATOR,
        everything,
        everything,
        groups=GROUPS,
        checks=everything,
        creates=(*(topic.name for topic in everything), CLOCK_TOPIC),
    )
