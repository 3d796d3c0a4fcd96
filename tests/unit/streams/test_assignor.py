"""The assignor of a stage: what its members tell each other, beside workers with Faust's own assignor, too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from faust.assignor import PartitionAssignor
from structlog.testing import capture_logs

from memstream.streams.faust.assignor import FILE, StageAssignor
from tests.support.light_group import CHANGELOG, TOPICS, MadeUpCluster, assignor_of

TURNS, COMMANDS = "memory.turns", "memory.commands.session"
SEND_LIMIT = 1_000_000
"""Bytes of a record that a broker takes by default."""


def worker(folder: Path, name: str, kind: type[Any] = StageAssignor, *, replicas: int = 0) -> Any:
    return assignor_of(kind, folder, name, replicas=replicas)


class Group:
    """Members and what the broker carries between them: bytes."""

    def __init__(self, **members: Any) -> None:
        self.members = members
        self.bytes = 0

    def rebalance(self, leader: str, cluster: Any, topics: Mapping[str, frozenset[str]] | None = None) -> None:
        joined = {}
        for name, assignor in self.members.items():
            subscribed = (topics or {}).get(name, TOPICS)
            joined[name] = assignor.metadata(subscribed).encode()
        read = {name: ConsumerProtocolMemberMetadata.decode(raw) for name, raw in joined.items()}
        told = {name: each.encode() for name, each in self.members[leader].assign(cluster, read).items()}
        assert told.keys() == joined.keys()
        self.bytes = sum(map(len, [*joined.values(), *told.values()]))
        for name, assignor in self.members.items():
            assignor.on_assignment(ConsumerProtocolMemberAssignment.decode(told[name]))

    def has(self, name: str, topic: str = TURNS) -> list[int]:
        return sorted(tp.partition for tp in self.members[name].assigned_actives() if tp.topic == topic)


def test_a_partition_of_every_topic_and_of_the_changelog_is_at_one_worker(tmp_path: Path) -> None:
    group = Group(**{name: worker(tmp_path, name) for name in "abc"})
    group.rebalance("b", MadeUpCluster(every=10))
    assert sorted(number for name in "abc" for number in group.has(name)) == list(range(10))
    for name in "abc":
        assert group.has(name, COMMANDS) == group.has(name, CHANGELOG) == group.has(name)


@pytest.mark.parametrize("kind", [StageAssignor, pytest.param(PartitionAssignor, marks=pytest.mark.xfail(strict=True))])
def test_what_a_group_sends_grows_with_its_partitions_alone(tmp_path: Path, kind: type[Any]) -> None:
    group = Group(**{f"w{n}": worker(tmp_path, f"w{n}", kind) for n in range(50)})
    for leader in ("w1", "w2"):
        group.rebalance(leader, MadeUpCluster(every=1_000))
    assert group.bytes < SEND_LIMIT / 10


def test_a_rebalance_without_a_change_moves_nothing(tmp_path: Path) -> None:
    group = Group(**{f"w{n:02}": worker(tmp_path, f"w{n:02}") for n in range(12)})
    group.rebalance("w00", MadeUpCluster(every=512))
    before = {name: group.has(name) for name in group.members}
    group.rebalance("w05", MadeUpCluster(every=512))
    assert {name: group.has(name) for name in group.members} == before


# ------------------------------------------------------------------------------------------------ other versions
@pytest.mark.parametrize("leaders", ["ab", "ba"])
@pytest.mark.parametrize("replicas", [0, 1])
def test_workers_with_fausts_assignor_are_in_the_same_group(tmp_path: Path, leaders: str, replicas: int) -> None:
    old, new = (
        worker(tmp_path, name, kind, replicas=replicas)
        for name, kind in (("a", PartitionAssignor), ("b", StageAssignor))
    )
    assert (old.name, old.version) == (new.name, new.version)
    group = Group(a=old, b=new)
    for leader in leaders:
        group.rebalance(leader, MadeUpCluster(every=7))
        assert sorted(group.has("a") + group.has("b")) == list(range(7))
        assert {len(group.has(name)) for name in "ab"} == {3, 4}
        assert group.has("b", COMMANDS) == group.has("b", CHANGELOG) == group.has("b")


def test_only_changelogs_are_followed_for_others(tmp_path: Path) -> None:
    group = Group(**{name: worker(tmp_path, name, replicas=1) for name in "abc"})
    group.rebalance("a", MadeUpCluster(every=6))
    followed = [tp for name in "abc" for tp in group.members[name].assigned_standbys()]
    assert sorted(followed) == [(CHANGELOG, number) for number in range(6)]


def test_in_a_rolling_upgrade_every_partition_has_one_worker_all_the_time(tmp_path: Path) -> None:
    group = Group(**{name: worker(tmp_path, name, PartitionAssignor) for name in "abc"})

    def rebalanced() -> None:
        for leader in sorted(group.members):
            group.rebalance(leader, MadeUpCluster(every=12))
            assert sorted(number for name in group.members for number in group.has(name)) == list(range(12))

    rebalanced()
    for name in "bca":
        group.members.pop(name)
        rebalanced()
        group.members[name] = worker(tmp_path, name)
        rebalanced()


def test_a_topic_that_only_a_later_version_reads_stays_with_its_partition(tmp_path: Path) -> None:
    group = Group(a=worker(tmp_path, "a"), b=worker(tmp_path, "b"))
    with capture_logs() as logs:
        group.rebalance("a", MadeUpCluster(every=6), {"a": TOPICS - {COMMANDS}, "b": TOPICS})
    assert group.has("a", COMMANDS) == []
    assert group.has("b", COMMANDS) == group.has("b") == group.has("b", CHANGELOG)
    assert logs[-1]["event"] == "topics_not_read_by_all"
    assert logs[-1]["workers_without"] == {COMMANDS: 1}


def test_a_topic_that_is_missing_is_named(tmp_path: Path) -> None:
    group = Group(a=worker(tmp_path, "a"))
    with capture_logs() as logs:
        group.rebalance("a", MadeUpCluster(**{TURNS: 4, CHANGELOG: 4}))
    assert group.has("a") == [0, 1, 2, 3]
    assert logs[-1]["event"] == "topics_missing"
    assert logs[-1]["topics"] == [COMMANDS]


# ------------------------------------------------------------------------------------------------ its folder
def test_a_worker_that_comes_back_gets_what_it_had(tmp_path: Path) -> None:
    group = Group(**{name: worker(tmp_path, name) for name in "abc"})
    group.rebalance("a", MadeUpCluster(every=12))
    had = {name: group.has(name) for name in "abc"}
    group.members.pop("a")
    group.rebalance("b", MadeUpCluster(every=12))
    group.members["a"] = worker(tmp_path, "a")
    group.rebalance("b", MadeUpCluster(every=12))
    assert {name: group.has(name) for name in "abc"} == had


def test_each_assignment_is_a_later_generation(tmp_path: Path) -> None:
    group = Group(a=worker(tmp_path, "a"))
    group.rebalance("a", MadeUpCluster(every=4))
    group.members["b"] = worker(tmp_path, "b")
    group.rebalance("b", MadeUpCluster(every=4))
    kept = [json.loads((tmp_path / name / FILE).read_text())["generation"] for name in "ab"]
    assert kept == [2, 2]


def test_it_has_no_partition_before_the_group_gave_it_one(tmp_path: Path) -> None:
    group = Group(a=worker(tmp_path, "a", replicas=1), b=worker(tmp_path, "b", replicas=1))
    group.rebalance("a", MadeUpCluster(every=4))
    again = worker(tmp_path, "a")
    assert again.assigned_actives() == again.assigned_standbys() == set()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"generation": "x"}', b'{"actives": {"t": [null]}}', b"\xff"])
def test_a_damaged_file_costs_no_more_than_its_partitions(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / FILE).write_bytes(content)
    with capture_logs() as logs:
        group = Group(a=worker(tmp_path, "a"))
    assert [entry["event"] for entry in logs] == ["assignment_unreadable"]
    group.rebalance("a", MadeUpCluster(every=4))
    assert json.loads((tmp_path / "a" / FILE).read_text())["actives"][TURNS] == [0, 1, 2, 3]


def test_numbers_of_partitions_that_are_gone_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / FILE).write_text('{"generation": 3, "actives": {"memory.turns": [-1, 2, 99]}, "standbys": {}}')
    group = Group(a=worker(tmp_path, "a"), b=worker(tmp_path, "b"))
    group.rebalance("a", MadeUpCluster(every=4))
    assert 2 in group.has("a")
    assert sorted(group.has("a") + group.has("b")) == [0, 1, 2, 3]


def test_a_folder_that_cannot_be_written_does_not_stop_the_worker(tmp_path: Path) -> None:
    group = Group(a=worker(tmp_path, "a"))
    (tmp_path / "a").rmdir()
    with capture_logs() as logs:
        group.rebalance("a", MadeUpCluster(every=4))
    assert group.has("a") == [0, 1, 2, 3]
    assert logs[-1]["event"] == "assignment_not_kept"
