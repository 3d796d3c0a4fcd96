"""Topic admin: differences that are refused or only reported, and the command that repairs them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memstream.schemas.topics import catalogue
from memstream.streams.log.port import TopicLayout
from memstream.streams.log.topic_admin import CREATE, Deployment, TopicReport, companions, plan, wanted

TWELVE = Deployment(partitions=12, replication=1, servers="kafka:9092")
CATALOGUE = catalogue()


def as_made(deployment: Deployment = TWELVE) -> dict[str, TopicLayout]:
    """Return the layouts after `create` on an empty log."""
    return {w.name: TopicLayout(w.name, w.partitions, w.config) for w in wanted(CATALOGUE, {}, deployment=deployment)}


def reports(layouts: dict[str, TopicLayout], deployment: Deployment = TWELVE) -> dict[str, TopicReport]:
    return {report.topic: report for report in plan(CATALOGUE, layouts, deployment=deployment)}


def refused(layouts: dict[str, TopicLayout], deployment: Deployment = TWELVE) -> dict[str, TopicReport]:
    return {name: report for name, report in reports(layouts, deployment).items() if not report.ok}


def test_topics_of_one_stage_are_companions() -> None:
    session = {"memory.turns", "memory.commands.session", "memory-observer-working_set-changelog"}
    owner = {
        "memory.observations",
        "memory.commands",
        "memory.episodes.recorded",
        "memory.recalled",
        "memory-reflector-ledger-changelog",
        "memory-consolidation-progress-changelog",
    }
    assert set(companions()) == {frozenset(session), frozenset(owner)}


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


def test_another_count_in_a_group_is_refused_by_name() -> None:
    layouts = as_made()
    layouts["memory.commands.session"] = replace(layouts["memory.commands.session"], partitions=6)
    found = refused(layouts)
    assert set(found) == {"memory.commands.session"}
    report = found["memory.commands.session"]
    assert "has 6 partitions, and 12 are needed" in report.detail
    assert "memory.turns" in report.detail
    assert report.fix == (
        "kafka-topics.sh --bootstrap-server kafka:9092 --alter --topic memory.commands.session --partitions 12"
    )


def test_a_changelog_of_another_count_must_be_created_again() -> None:
    layouts = as_made()
    name = "memory-reflector-ledger-changelog"
    layouts[name] = replace(layouts[name], partitions=6)
    assert refused(layouts)[name].fix.endswith(f"--delete --topic {name} && {CREATE}")


def test_partitions_cannot_be_removed() -> None:
    layouts = as_made()
    layouts["memory.commands"] = replace(layouts["memory.commands"], partitions=24)
    assert "--delete" in refused(layouts)["memory.commands"].fix


def test_a_whole_group_with_another_count_than_the_settings_is_ok_and_reported() -> None:
    layouts = as_made(replace(TWELVE, partitions=24))
    found = reports(layouts)
    assert all(report.ok for report in found.values())
    assert "MEMSTREAM_PARTITIONS says 12, the topics stand with 24" in found["memory.turns"].detail


def test_a_missing_topic_is_created_with_the_count_of_its_companions() -> None:
    layouts = as_made(replace(TWELVE, partitions=24))
    del layouts["memory.commands.session"]
    (made,) = wanted(CATALOGUE, layouts, deployment=TWELVE)
    assert (made.name, made.partitions) == ("memory.commands.session", 24)


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
