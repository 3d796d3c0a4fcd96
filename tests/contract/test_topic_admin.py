"""Topic administration on a real log: it creates the topics that it describes, and creating them again changes
nothing."""

from __future__ import annotations

from pathlib import Path

from memstream.schemas.topics import catalogue
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.topic_admin import Deployment, check, create


async def test_embedded(tmp_path: Path) -> None:
    deployment = Deployment(partitions=2, replication=1)
    log = EmbeddedLog(folder=tmp_path)
    await log.start()
    try:
        assert not any(report.ok for report in await check(log, deployment=deployment))
        made = await create(log, deployment=deployment)
        assert [report.topic for report in made if report.ok] == [topic.name for topic in catalogue()]
        assert {report.detail.partition(":")[0] for report in made} == {"created"}
        again = await create(log, deployment=deployment)
        assert all(report.ok and not report.detail.startswith("created") for report in again)
        await log.delete(["memory.turns"])
        missing = [report for report in await check(log, deployment=deployment) if not report.ok]
        assert [(report.topic, report.fix) for report in missing] == [("memory.turns", "memstream topics create")]
    finally:
        await log.close()
