"""The changes of facts that an export reads, over the folder and over a real broker."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memstream.recall.export import fact_log
from memstream.recall.export.fact_log import FactLog
from memstream.recall.export.request import ExportRequest
from memstream.schemas import ids
from memstream.schemas.export import ExportedFact
from memstream.schemas.facts import Fact, FactUpdated
from memstream.schemas.turns import Owner
from memstream.streams.log.port import Log, TopicSpec
from tests.support.record_builders import stored_fact
from tests.support.stored_memory import NOW

USERS = tuple(Owner(scope="user", id=f"u{n}") for n in range(6))


@pytest.fixture
async def topic(log: Log, topic_prefix: str, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"{topic_prefix}facts.updated"
    monkeypatch.setattr(fact_log, "TOPIC", name)
    await log.create([TopicSpec(name, 4, 1, {})])
    return name


def fact_of(owner: Owner, tenant: str = "acme") -> Fact:
    fact_id = ids.fact_id(owner.key(tenant), "cause")
    whose = {"owner": owner, "owner_key": owner.key(tenant), "tenant_id": tenant, "fact_id": fact_id}
    return stored_fact("Works at Stripe").model_copy(update=whose).public()


async def change(log: Log, topic: str, fact: Fact, version: int) -> None:
    now, before = (fact.model_copy(update={"version": each}) for each in (version, version - 1))
    event = FactUpdated(
        event_id=ids.event_id(fact.fact_id, version), action="new" if version == 1 else "reinforced", at=NOW,
        tenant_id=fact.tenant_id, owner=fact.owner, fact=now, before=None if version == 1 else before,
    )  # fmt: skip
    await log.append(topic, key=fact.owner.key(fact.tenant_id).encode(), value=event.to_bytes())


async def test_an_export_reads_the_changes_before_its_moment_and_those_after_it(log: Log, topic: str) -> None:
    facts = [fact_of(user) for user in USERS]
    for version in (1, 2, 3):
        for fact in facts:
            await change(log, topic, fact, version)
    await log.append(topic, key=facts[0].owner.key("acme").encode(), value=b"no event")
    await change(log, topic, fact_of(USERS[0], "acme2"), 1)
    everybody, one = ExportRequest("acme"), ExportRequest("acme", USERS[0])
    reading = FactLog(log=log, request=everybody)
    ends = await reading.ends()
    for fact in facts:
        await change(log, topic, fact, 4)

    pages = [page async for page in reading.pages(ends, place=None, size=2)]
    found = [(each.fact.fact_id, each.fact.version) for page in pages for each in page.events]
    assert sorted(found) == sorted((fact.fact_id, version) for fact in facts for version in (1, 2, 3))
    assert pages[-1].place is None
    for number, page in enumerate(pages[:-1]):
        rest = [again async for again in reading.pages(ends, place=page.place, size=2)]
        assert [each.events for each in rest] == [each.events for each in pages[number + 1 :]]
    [own] = [page async for page in FactLog(log=log, request=one).pages(ends, place=None, size=9)]
    assert [(each.fact.fact_id, each.fact.version) for each in own.events] == [
        (facts[0].fact_id, version) for version in (1, 2, 3)
    ]

    after, events = await FactLog(log=log, request=one).after(ends)
    assert [(each.fact.fact_id, each.fact.version) for each in events] == [(facts[0].fact_id, 4)]
    assert await FactLog(log=log, request=one).after(after) == (after, [])
    found_at = fact_log.FactsAtMoment(log=reading, ends=ends)
    now = sorted((ExportedFact(**dict(fact) | {"version": 4}) for fact in facts), key=lambda each: each.fact_id)
    moment = NOW + timedelta(days=1)
    assert [each.version for each in await found_at.returned(now, at=moment)] == [3] * len(facts)
