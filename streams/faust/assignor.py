"""Faust's assignor with a sticky assignment and without the distribution of all members.

With each subscription and each assignment, Faust sends the distribution: the partitions of all members. Faust uses it
to route web requests by key, which no stage does. The broker keeps all assignments of a group in one record, which must
be smaller than the broker's `message.max.bytes`. With the distribution, the record's size grows with partitions times
members, and the record was too large for 1 000 partitions and 50 workers. Here a member sends only its own partitions,
and receives only its own assignment.

The protocol name and the record format are those that Faust's assignor uses, with an empty distribution. So workers of
earlier versions, which use Faust's assignor, can be in one group with workers of this version.

aiokafka 0.14 has only the eager protocol: each rebalance first takes all partitions from all members
(`aiokafka/consumer/group_coordinator.py:371`). A member that gets a partition back still has the partition's local
table, and reads only the later entries of the changelog.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import structlog
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from faust.assignor import PartitionAssignor
from faust.assignor.client_assignment import ClientAssignment, ClientMetadata
from pydantic import BaseModel, ConfigDict, ValidationError

from ..engine.assignment import MemberAssignment, OwnedPartitions, assign

log = structlog.get_logger(__name__)

#: file with the last assignment, in the worker's folder
FILE = "assignment.json"


class StageMetadata(ClientMetadata, serializer="json", include_metadata=False, namespace="@StageMetadata"):  # type: ignore[call-arg]
    """The metadata that a member sends and receives. Its distributions stay empty.

    `generation` is 0 when a member uses Faust's own assignor, which does not count generations.
    """

    generation: int = 0


class LastAssignment(BaseModel):
    """A worker's last assignment: partition numbers by topic."""

    model_config = ConfigDict(frozen=True)

    generation: int = 0
    actives: dict[str, list[int]] = {}
    standbys: dict[str, list[int]] = {}


class StageAssignor(PartitionAssignor):
    """The assignor of a stage. A restarted worker sends its last assignment, which it reads from its folder."""

    def __init__(self, app: Any, replicas: int = 0) -> None:
        super().__init__(app, replicas)
        self._file = Path(app.conf.datadir) / FILE
        self._last = self._load()

    # ------------------------------------------------------------------------------------------------ as a member
    @property
    def _metadata(self) -> StageMetadata:
        had = ClientAssignment(actives=self._last.actives, standbys=self._last.standbys)
        return self._metadata_of(had, str(self._url), self._last.generation)

    @staticmethod
    def _metadata_of(assignment: ClientAssignment, url: str, generation: int) -> StageMetadata:
        return StageMetadata(assignment=assignment, url=url, changelog_distribution={}, generation=generation)

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Accept the leader's assignment, and save it in the worker's folder."""
        given = StageMetadata.loads(self._decompress(assignment.user_data))
        self._assignment = given.assignment
        self._active_tps, self._standby_tps = given.assignment.active_tps, given.assignment.standby_tps
        self._last = LastAssignment(
            generation=given.generation, actives=given.assignment.actives, standbys=given.assignment.standbys
        )
        self._save(self._last)

    # ------------------------------------------------------------------------------------------------ as the leader
    def _perform_assignment(self, cluster: Any, member_metadata: Mapping[str, Any]) -> dict[str, Any]:
        joined = {member: StageMetadata.loads(metadata.user_data) for member, metadata in member_metadata.items()}
        subscribed = {member: frozenset(metadata.subscription) for member, metadata in member_metadata.items()}
        counts = _partition_counts(cluster, frozenset[str]().union(*subscribed.values()))
        _warn_of_unread(subscribed)
        owned = {member: _owned(metadata) for member, metadata in joined.items()}
        given = assign(max(counts.values(), default=0), owned, replicas=self.replicas)
        generation = 1 + max(metadata.generation for metadata in joined.values())
        changelogs = self._table_manager.changelog_topics
        return {
            member: self._encoded(
                _by_topic(
                    given[member],
                    {topic: counts[topic] for topic in sorted(subscribed[member] & counts.keys())},
                    changelogs,
                ),
                joined[member].url,
                generation,
            )
            for member in joined
        }

    def _encoded(self, assignment: ClientAssignment, url: str, generation: int) -> ConsumerProtocolMemberAssignment:
        return ConsumerProtocolMemberAssignment(
            self.version,
            sorted(assignment.kafka_protocol_assignment(self._table_manager)),
            self._compress(self._metadata_of(assignment, url, generation).dumps()),
        )

    # ------------------------------------------------------------------------------------------------ its folder
    def _load(self) -> LastAssignment:
        try:
            return LastAssignment.model_validate_json(self._file.read_bytes())
        except FileNotFoundError:
            pass
        except (OSError, ValidationError) as error:
            remedy = "none: it will be replaced, and this worker may get other partitions than before"
            log.warning("assignment_unreadable", file=str(self._file), error=str(error), remedy=remedy)
        return LastAssignment()

    def _save(self, last: LastAssignment) -> None:
        written = self._file.with_suffix(".new")
        try:
            written.write_text(last.model_dump_json())
            os.replace(written, self._file)
        except OSError as error:
            log.warning("assignment_not_kept", file=str(self._file), error=str(error), remedy="is the disk full?")


def _partition_counts(cluster: Any, topics: Iterable[str]) -> dict[str, int]:
    counts = {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in topics}
    missing = sorted(topic for topic, count in counts.items() if not count)
    if missing:
        log.warning("topics_missing", topics=missing, remedy="memstream topics create")
    return {topic: count for topic, count in counts.items() if count}


def _warn_of_unread(subscribed: Mapping[str, frozenset[str]]) -> None:
    """Log a warning for topics that only some members read.

    A partition number has one owner in all topics, because a table has only one writer. So if this
    owner does not read a topic, no member reads the partition of that topic.
    """
    lacking = defaultdict[str, int](int)
    every = frozenset[str]().union(*subscribed.values())
    for topics in subscribed.values():
        for topic in every - topics:
            lacking[topic] += 1
    if lacking:
        log.warning(
            "topics_not_read_by_all",
            workers_without=dict(sorted(lacking.items())),
            remedy="start the same version of this stage everywhere; nothing is lost meanwhile",
        )


def _owned(metadata: StageMetadata) -> OwnedPartitions:
    had = metadata.assignment
    return OwnedPartitions(
        generation=metadata.generation,
        actives=frozenset(number for numbers in had.actives.values() for number in numbers),
        standbys=frozenset(number for numbers in had.standbys.values() for number in numbers),
    )


def _by_topic(given: MemberAssignment, counts: Mapping[str, int], changelogs: Iterable[str]) -> ClientAssignment:
    """Convert partition numbers to partitions by topic. Standbys exist only for changelogs."""
    return ClientAssignment(
        actives={topic: [n for n in given.actives if n < count] for topic, count in counts.items()},
        standbys={
            topic: [n for n in given.standbys if n < count]
            for topic, count in counts.items()
            if given.standbys and topic in changelogs
        },
    )
