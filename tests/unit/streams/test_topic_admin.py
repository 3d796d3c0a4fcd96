"""Topic admin: differences that are refused or only reported, and the command that repairs them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memstream.schemas.topics import catalogue
from memstream.streams.log.port import TopicLayout
from memstream.streams.log.topic_admin import CREATE, Deployment, TopicReport, plan, problems, wanted

TWELVE = Deployment(partitions=12, replication=1, servers="kafka:9092")
CATALOGUE = catalogue()


def as_made(deployment: Deployment = TWELVE) -> dict[str, TopicLayout]:
    """Return the layouts after `create` on an empty log."""
    return {w.name: TopicLayout(w.name, w.partitions, w.config) for w in wanted(CATALOGUE, {}, deployment=deployment)}


def reports(layouts: dict[str, TopicLayout], deployment: Deployment = TWELVE) -> dict[str, TopicReport]:
    return {report.topic: report for report in plan(CATALOGUE, layouts, deployment=deployment)}


def refused(layouts: dict[str, TopicLayout], deployment: Deployment = TWELVE) -> dict[str, TopicReport]:
    return {name: report for name, report in reports(layouts, deployment).items() if not report.ok}


@pytest.mark.parametrize("deployment", [TWELVE, Deployment(partitions=1, replication=1), replace(TWELVE, partitions=2)])
def test_created_topics_are_ok(deployment: Deployment) -> None:
    assert refused(as_made(deployment), deployment) == {}
    assert wanted(CATALOGUE, as_made(deployment), deployment=deployment) == ()


def test_an_empty_log_misses_all_topics() -> None:
    missing = refused({})
    assert len(missing) == len(CATALOGUE)
    assert {(report.detail, report.fix) for report in missing.values()} == {("is missing", CREATE)}


def test_dead_letters_have_three_partitions_and_large_records() -> None:
    made = as_made()
    assert made["memory.turns.dlq"].partitions == 3
    assert made["memory.turns.dlq"].config["max.message.bytes"] == str(4 * 1024 * 1024)


def with_count(partitions: int, *topics: str) -> dict[str, TopicLayout]:
    return {
        name: replace(layout, partitions=partitions) if name in topics else layout for name, layout in as_made().items()
    }


@pytest.mark.parametrize("name", ["memory.commands.session", "memory.facts", "memory-reflector-ledger-changelog"])
def test_a_topic_of_another_count_is_refused_by_name(name: str) -> None:
    found = refused(with_count(6, name))
    assert set(found) == {name}
    assert "has 6 partitions, and MEMSTREAM_PARTITIONS is 12" in found[name].detail
    assert found[name].fix == "stop all workers, run `memstream topics grow --partitions 12`"


def test_partitions_that_were_added_by_hand_are_taken_over() -> None:
    found = refused(with_count(24, "memory.turns"))
    assert set(found) == {"memory.turns"}
    assert found["memory.turns"].fix == (
        "stop all workers, run `memstream topics grow --partitions 24`, then set MEMSTREAM_PARTITIONS=24"
    )


@pytest.mark.parametrize(
    ("partitions", "fix"),
    [
        (24, "set MEMSTREAM_PARTITIONS=24"),
        (6, "stop all workers, run `memstream topics grow --partitions 12`, or set MEMSTREAM_PARTITIONS=6"),
    ],
)
def test_another_count_than_the_settings_is_refused(partitions: int, fix: str) -> None:
    found = refused(as_made(replace(TWELVE, partitions=partitions)))
    assert {report.fix for report in found.values()} == {fix}
    assert "memory.policies" not in found
    assert not any(name.endswith(".dlq") for name in found)


def test_a_missing_topic_is_created_with_the_count_of_the_others() -> None:
    layouts = as_made(replace(TWELVE, partitions=24))
    del layouts["memory.commands.session"]
    (made,) = wanted(CATALOGUE, layouts, deployment=TWELVE)
    assert (made.name, made.partitions) == ("memory.commands.session", 24)


def test_topics_with_the_same_problem_are_named_together() -> None:
    found = problems(list(reports(as_made(replace(TWELVE, partitions=24))).values()))
    assert [fix for _, fix in found] == ["set MEMSTREAM_PARTITIONS=24"]
    assert found[0][0].startswith("memory.turns, memory.commands.session, memory.observations and 10 more: has 24")


def test_no_remedy_deletes_a_topic() -> None:
    for one in (replace(TWELVE, servers=None), TWELVE):
        for partitions in (1, 6, 24):
            layouts = {
                name: TopicLayout(name, partitions, {"cleanup.policy": "compact", "max.message.bytes": "1"})
                for name in as_made()
            }
            assert not any("--delete" in report.fix for report in refused(layouts, one).values())


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_compaction_on_a_log_is_refused(policy: str) -> None:
    layouts = as_made()
    layouts["memory.turns"] = replace(layouts["memory.turns"], config={"cleanup.policy": policy})
    report = refused(layouts)["memory.turns"]
    assert "compaction" in report.detail
    assert report.fix == (
        "kafka-configs.sh --bootstrap-server kafka:9092 --alter --entity-type topics "
        "--entity-name memory.turns --add-config cleanup.policy=delete"
    )


@pytest.mark.parametrize("config", [{"cleanup.policy": "delete"}, {"cleanup.policy": "compact,delete"}, {}])
def test_deletion_on_a_compacted_topic_is_refused(config: dict[str, str]) -> None:
    layouts = as_made()
    layouts["memory.facts"] = replace(layouts["memory.facts"], config=config)
    assert "deletion" in refused(layouts)["memory.facts"].detail


def test_a_record_limit_below_our_records_is_refused() -> None:
    layouts = as_made()
    name = "memory-observer-working_set-changelog"
    layouts[name] = replace(layouts[name], config={"cleanup.policy": "compact", "max.message.bytes": "1048588"})
    assert "1048588" in refused(layouts)[name].detail


def test_another_retention_is_reported_and_accepted() -> None:
    layouts = as_made()
    config = {"cleanup.policy": "delete", "retention.ms": "1000"}
    layouts["memory.turns"] = replace(layouts["memory.turns"], config=config)
    report = reports(layouts)["memory.turns"]
    assert report.ok
    assert "retention.ms is 1000" in report.detail


def test_other_topics_of_the_log_are_ignored() -> None:
    assert refused(as_made() | {"orders": TopicLayout("orders", 5, {})}) == {}


def test_embedded_fixes_name_no_kafka_tool() -> None:
    one = Deployment(partitions=1, replication=1)
    layouts = as_made(one)
    layouts["memory.turns"] = TopicLayout("memory.turns", 4, {"cleanup.policy": "compact"})
    fixes = " ".join(report.fix for report in refused(layouts, one).values())
    assert "kafka-" not in fixes
    assert fixes
