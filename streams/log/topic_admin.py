"""Topic admin: create the topics of the catalogue, compare existing topics with it, and name remedies for differences.

`plan` is pure. A difference that would break a stage makes a report's `ok` False: a missing topic, a partition count
other than the deployment's, compaction on a topic that must keep every record, deletion on a compacted topic, or a
maximum record size below the catalogue's. Other differences (such as another retention) are the operator's choice;
`detail` names them. No remedy deletes a topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...schemas.topics import Topic, catalogue, partitions_of
from .port import Log, TopicLayout, TopicSpec

CREATE = "memstream topics create"
GROW = "memstream topics grow"
NAMED = 3
"""Maximum number of topic names in one problem."""
_KAFKA_DEFAULTS = {"cleanup.policy": "delete"}


@dataclass(frozen=True, slots=True)
class TopicReport:
    """The result of one topic's check. `ok`: a worker may use the topic. `fix`: the repair command, empty when ok."""

    topic: str
    ok: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The topic settings of a deployment. `servers` (`host:port,…`) is used in `fix` commands; None when embedded."""

    partitions: int
    replication: int
    servers: str | None = None


def wanted(
    topics: Sequence[Topic], layouts: Mapping[str, TopicLayout], *, deployment: Deployment
) -> tuple[TopicSpec, ...]:
    """Return the topics to create.

    They get the highest partition count of the existing topics, or the deployment's count if no topic exists.
    """
    return tuple(
        TopicSpec(
            topic.name,
            partitions_of(topic, default=max(_present(layouts), default=deployment.partitions)),
            deployment.replication,
            topic.settings(),
        )
        for topic in topics
        if topic.name not in layouts
    )


def plan(topics: Sequence[Topic], layouts: Mapping[str, TopicLayout], *, deployment: Deployment) -> list[TopicReport]:
    """Compare `topics` with the log's `layouts`. Return one report per topic, in the order of `topics`."""
    remedy = _fix_partitions(layouts, deployment.partitions)
    return [_report(topic, layouts.get(topic.name), deployment=deployment, fix_count=remedy) for topic in topics]


def problems(reports: Sequence[TopicReport]) -> list[tuple[str, str]]:
    """Return each problem with its remedy. Topics with the same problem share one entry."""
    together: dict[tuple[str, str], list[str]] = {}
    for report in reports:
        if not report.ok:
            together.setdefault((report.detail, report.fix), []).append(report.topic)
    return [(f"{_named(topics)}: {detail}", fix) for (detail, fix), topics in together.items()]


def _named(topics: Sequence[str]) -> str:
    more = f" and {len(topics) - NAMED} more" if len(topics) > NAMED else ""
    return ", ".join(topics[:NAMED]) + more


async def check(log: Log, *, deployment: Deployment, topics: Sequence[Topic] | None = None) -> list[TopicReport]:
    """Compare the log with the catalogue. Raises `Transient` when the log cannot be reached."""
    return plan(catalogue() if topics is None else topics, await log.topics(), deployment=deployment)


async def create(log: Log, *, deployment: Deployment, topics: Sequence[Topic] | None = None) -> list[TopicReport]:
    """Create the missing topics, then compare all topics with the catalogue. Existing topics are not changed."""
    chosen = catalogue() if topics is None else topics
    missing = wanted(chosen, await log.topics(), deployment=deployment)
    if missing:
        await log.create(missing)
    made = {topic.name for topic in missing}
    return [
        TopicReport(report.topic, report.ok, f"created: {report.detail}", report.fix)
        if report.topic in made
        else report
        for report in await check(log, deployment=deployment, topics=chosen)
    ]


# ------------------------------------------------------------------------------------------------ one topic
def _present(layouts: Mapping[str, TopicLayout]) -> set[int]:
    """Return the partition counts of the existing topics, without topics for which the catalogue fixes the count."""
    return {
        layouts[topic.name].partitions for topic in catalogue() if topic.partitions is None and topic.name in layouts
    }


def _report(topic: Topic, layout: TopicLayout | None, *, deployment: Deployment, fix_count: str) -> TopicReport:
    if layout is None:
        return TopicReport(topic.name, False, "is missing", CREATE)
    wrong: list[tuple[str, str]] = []
    notes: list[str] = []
    if topic.partitions is None and layout.partitions != deployment.partitions:
        detail = f"has {layout.partitions} partitions, and MEMSTREAM_PARTITIONS is {deployment.partitions}"
        wrong.append((f"{detail}: all topics of a deployment have the same count", fix_count))
    for name, value in topic.settings().items():
        found = layout.config.get(name, _KAFKA_DEFAULTS.get(name))
        if found is None or found == value:
            continue
        if name == "cleanup.policy":
            wrong.append((_policy_wrong(topic, found), _fix_config(topic, name, value, deployment=deployment)))
        elif name == "max.message.bytes" and _less(found, value):
            detail = f"accepts records up to {found} bytes, but {value} bytes are needed"
            wrong.append((detail, _fix_config(topic, name, value, deployment=deployment)))
        else:
            notes.append(f"{name} is {found}, the catalogue's is {value}")
    if wrong:
        details, fixes = zip(*wrong, strict=True)
        return TopicReport(topic.name, False, "; ".join((*details, *notes)), " && ".join(dict.fromkeys(fixes)))
    plural = "partition" if layout.partitions == 1 else "partitions"
    return TopicReport(topic.name, True, "; ".join((f"{layout.partitions} {plural}, {topic.clean_up}", *notes)))


def _policy_wrong(topic: Topic, found: str) -> str:
    if topic.clean_up == "delete":
        return f"cleanup.policy is {found}: compaction would remove records from a log that must keep every record"
    return f"cleanup.policy is {found}: deletion would remove state that must be kept forever"


def _less(found: str, value: str) -> bool:
    return found.isdigit() and int(found) < int(value)


def _fix_partitions(layouts: Mapping[str, TopicLayout], configured: int) -> str:
    """Return the remedy for partition counts that differ from each other or from the setting."""
    present = _present(layouts)
    most = max(present, default=configured)
    if len(present) == 1 and most > configured:
        return f"set MEMSTREAM_PARTITIONS={most}"
    count = max(most, configured)
    remedy = f"stop all workers, run `{GROW} --partitions {count}`"
    others = f", or set MEMSTREAM_PARTITIONS={most}" if len(present) == 1 else ""
    return remedy + (f", then set MEMSTREAM_PARTITIONS={count}" if count != configured else "") + others


def _fix_config(topic: Topic, name: str, value: str, *, deployment: Deployment) -> str:
    if deployment.servers is None:
        return "set MEMSTREAM_BROKER to a new folder: this one was not created by memstream topics create"
    return (
        f"kafka-configs.sh --bootstrap-server {deployment.servers} --alter --entity-type topics "
        f"--entity-name {topic.name} --add-config {name}={value}"
    )
