"""Topic admin: create the topics of the catalogue, compare existing ones, and name the remedy for a difference.

`plan` is pure. A difference that would break a stage is refused (`ok` is False): a missing topic, different partition
counts among the topics of one stage, compaction on a log, deletion on a compacted topic, a record limit below our
records. Other differences (such as another retention) are the operator's choice; `detail` names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...schemas.topics import STAGES, Topic, catalogue, changelog_of, partitions_of, read_by
from .port import Log, TopicLayout, TopicSpec

CREATE = "memstream topics create"
_KAFKA_DEFAULTS = {"cleanup.policy": "delete"}


@dataclass(frozen=True, slots=True)
class TopicReport:
    """One topic: whether a worker may start on it, the details, and the command that repairs it (empty when ok)."""

    topic: str
    ok: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The topic settings of a deployment. `servers` (`host:port,…`) is for the commands of `fix`; None: embedded."""

    partitions: int
    replication: int
    servers: str | None = None


def companions() -> tuple[frozenset[str], ...]:
    """Return the groups of topics that must have the same partition count.

    The sources of a stage and its changelog share a table by partition number. Stages that share a source belong to one
    group.
    """
    groups: list[frozenset[str]] = []
    for stage in STAGES:
        changelog = changelog_of(stage)
        group = frozenset(topic.name for topic in (*read_by(stage), *([changelog] if changelog else [])))
        bound = [other for other in groups if other & group]
        groups = [other for other in groups if not other & group] + [group.union(*bound)]
    return tuple(groups)


def wanted(
    topics: Sequence[Topic], layouts: Mapping[str, TopicLayout], *, deployment: Deployment
) -> tuple[TopicSpec, ...]:
    """Return the topics to create, with the partition count of existing companions, else the deployment's."""
    return tuple(
        TopicSpec(
            topic.name,
            _expected(topic, topics, layouts, deployment=deployment),
            deployment.replication,
            topic.settings(),
        )
        for topic in topics
        if topic.name not in layouts
    )


def plan(topics: Sequence[Topic], layouts: Mapping[str, TopicLayout], *, deployment: Deployment) -> list[TopicReport]:
    """Compare `topics` with the log's `layouts`. Return one report a topic, in their order; others are ignored."""
    return [
        _report(
            topic,
            layouts.get(topic.name),
            _expected(topic, topics, layouts, deployment=deployment),
            deployment=deployment,
        )
        for topic in topics
    ]


async def check(log: Log, *, deployment: Deployment, topics: Sequence[Topic] | None = None) -> list[TopicReport]:
    """Compare the log with the catalogue. Raises `Transient` when the log cannot be reached."""
    return plan(catalogue() if topics is None else topics, await log.topics(), deployment=deployment)


async def create(log: Log, *, deployment: Deployment, topics: Sequence[Topic] | None = None) -> list[TopicReport]:
    """Create missing topics, then compare. Existing topics are not changed."""
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
def _expected(
    topic: Topic, topics: Sequence[Topic], layouts: Mapping[str, TopicLayout], *, deployment: Deployment
) -> int:
    """Return the deployment's count if a companion has it or none exists, else the count of the first that exists."""
    configured = partitions_of(topic, default=deployment.partitions)
    group = next((group for group in companions() if topic.name in group), frozenset((topic.name,)))
    counts = [layouts[other.name].partitions for other in topics if other.name in group and other.name in layouts]
    return configured if not counts or configured in counts else counts[0]


def _report(topic: Topic, layout: TopicLayout | None, expected: int, *, deployment: Deployment) -> TopicReport:
    if layout is None:
        return TopicReport(topic.name, False, "is missing", CREATE)
    wrong: list[tuple[str, str]] = []
    notes: list[str] = []
    if layout.partitions != expected:
        shared = next((group for group in companions() if topic.name in group), frozenset())
        others = ", ".join(sorted(shared - {topic.name}))
        detail = f"has {layout.partitions} partitions, and {expected} are needed: it must have as many as {others}"
        wrong.append((detail, _fix_partitions(topic, layout, expected, deployment=deployment)))
    elif topic.partitions is None and expected != deployment.partitions:
        notes.append(f"MEMSTREAM_PARTITIONS says {deployment.partitions}, the topics stand with {expected}")
    for name, value in topic.settings().items():
        found = layout.config.get(name, _KAFKA_DEFAULTS.get(name))
        if found is None or found == value:
            continue
        if name == "cleanup.policy":
            wrong.append((_policy_wrong(topic, found), _fix_config(topic, name, value, deployment=deployment)))
        elif name == "max.message.bytes" and _less(found, value):
            detail = f"takes records up to {found} bytes, and {value} are needed"
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
        return f"cleanup.policy is {found}: compaction would take records from a log that must keep each"
    return f"cleanup.policy is {found}: deletion would take state that must be kept for ever"


def _less(found: str, value: str) -> bool:
    return found.isdigit() and int(found) < int(value)


def _fix_partitions(topic: Topic, layout: TopicLayout, expected: int, *, deployment: Deployment) -> str:
    """Return the command for another partition count. A topic that a table depends on has to be created again."""
    if deployment.servers is None:
        return f"MEMSTREAM_PARTITIONS={layout.partitions} with a new folder in MEMSTREAM_BROKER"
    kafka = f"kafka-topics.sh --bootstrap-server {deployment.servers}"
    if layout.partitions < expected and topic.clean_up == "delete":
        return f"{kafka} --alter --topic {topic.name} --partitions {expected}"
    return f"{kafka} --delete --topic {topic.name} && {CREATE}"


def _fix_config(topic: Topic, name: str, value: str, *, deployment: Deployment) -> str:
    if deployment.servers is None:
        return "a new folder in MEMSTREAM_BROKER: this one was not made by memstream topics create"
    return (
        f"kafka-configs.sh --bootstrap-server {deployment.servers} --alter --entity-type topics "
        f"--entity-name {topic.name} --add-config {name}={value}"
    )
