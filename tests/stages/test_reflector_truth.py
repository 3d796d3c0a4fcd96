"""Facts stay true: the conflict pipeline in the real stage and engine, and what readers of two times see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.factory import open_store
from memstream.recall.record_filters import RecordSelection
from memstream.recall.record_reader import RecordReader
from memstream.schemas import ids
from tests.support.embedded_stage import Bench
from tests.support.record_builders import OWNER
from tests.support.reflector_world import Talk, command, reflector


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = await open_store(
        f"embedded://{tmp_path / 'qdrant'}", embedder=HashingEmbedder().identity, holds_folder=True
    )
    await store.ensure()
    made = Bench(store=store, folder=tmp_path, stage_name="reflector")
    made.stage = reflector(made)
    yield made
    await store.close()


def day(month: int, number: int = 1) -> datetime:
    return datetime(2026, month, number, tzinfo=UTC)


async def hears(bench: Bench, talk: Talk, content: str, *, said: datetime, heard: datetime, **fields: object) -> None:
    """A turn that was said on one day and arrived on another."""
    bench.now.moment = heard
    await bench.run(talk.turn(talk.says(content, **fields), occurred_at=said))


async def believed(bench: Bench, **times: datetime) -> list[str]:
    page = await RecordReader(store=bench.store).facts(RecordSelection(tenant_id="acme", owner=OWNER, **times))  # type: ignore[arg-type]
    return sorted(fact.content for fact in page.items)


async def states(bench: Bench) -> dict[str, str]:
    return {content: fact.state for content, fact in (await bench.facts()).items()}


async def test_the_employer_in_march_after_two_changes_and_a_late_arrival(bench: Bench) -> None:
    talk = Talk(bench)
    await hears(bench, talk, "Works at Google", said=day(1), heard=day(1))
    await hears(bench, talk, "Joined Stripe in April", said=day(6), heard=day(6), valid_from=day(4))
    await hears(bench, talk, "Works at Adobe", said=day(9), heard=day(9))
    await hears(bench, talk, "Works at Shopify", said=day(7), heard=day(10))  # it had lain somewhere since July
    assert await states(bench) == {
        "Works at Google": "superseded",
        "Joined Stripe in April": "superseded",
        "Works at Adobe": "active",
        "Works at Shopify": "superseded",
    }
    rows = await bench.facts()
    google, stripe, adobe = (rows[each] for each in ("Works at Google", "Joined Stripe in April", "Works at Adobe"))
    assert (google.valid_to, google.superseded_by, stripe.supersedes) == (day(4), stripe.fact_id, google.fact_id)
    assert (stripe.valid_to, stripe.superseded_by, adobe.supersedes) == (day(9), adobe.fact_id, stripe.fact_id)
    late = rows["Works at Shopify"]
    assert (late.valid_from, late.valid_to, late.version) == (day(7), day(9), 1)
    assert (late.supersedes, late.superseded_by) == (None, None)
    assert {fact.predicate for fact in rows.values()} == {"works_at"}

    assert await believed(bench) == ["Works at Adobe"]
    assert await believed(bench, as_of=day(3)) == ["Works at Google"]
    assert await believed(bench, as_of=day(5)) == ["Joined Stripe in April"]
    assert await believed(bench, as_of=day(8)) == ["Joined Stripe in April", "Works at Shopify"]
    assert await believed(bench, as_of=day(5), known_at=day(5, 20)) == ["Works at Google"], "not told before June"
    assert await believed(bench, as_of=day(5), known_at=day(6, 20)) == ["Joined Stripe in April"]
    assert await believed(bench, known_at=day(5)) == ["Works at Google"]
    assert await believed(bench, known_at=day(9, 20), as_of=day(8)) == ["Joined Stripe in April"]
    assert await believed(bench, known_at=day(11), as_of=day(10)) == ["Works at Adobe"]
    await bench.agree()


async def test_what_contradicts_supersedes_though_its_words_lie_far(bench: Bench) -> None:
    talk = Talk(bench)
    for n in range(8):  # so that the nearest five are others
        await talk.tell(f"Has relocated servers to rack number {n} in a basement")
    home = await talk.tell("Is based in Toronto")
    await talk.tell("Relocated to Vancouver")
    rows = await bench.facts()
    old, new = rows["Is based in Toronto"], rows["Relocated to Vancouver"]
    assert (old.state, old.superseded_by, new.supersedes) == ("superseded", new.fact_id, old.fact_id)
    assert old.fact_id == ids.fact_id(OWNER.key("acme"), home.observation_id)
    closed, opened = bench.events()[-2:]
    assert (closed.action, opened.action) == ("superseded", "new")
    assert closed.decision is not None
    assert opened.decision is not None
    assert (closed.decision.stage, closed.decision.zone) == ("predicates", "CONFLICT-CHECK")
    assert (closed.decision.other_fact_id, opened.decision.other_fact_id) == (new.fact_id, old.fact_id)
    assert opened.decision.similarity is not None
    await bench.agree()


async def test_more_detail_rewords_the_row_and_its_vector(bench: Bench) -> None:
    talk = Talk(bench)
    await talk.tell("Works at Google")
    await talk.tell("Works at Google in Zurich")
    await talk.tell("Is employed by Google")
    (fact,) = (await bench.facts()).values()
    assert (fact.content, fact.version, fact.reinforcement_count) == ("Works at Google in Zurich", 3, 2)
    assert [event.action for event in bench.events()] == ["new", "updated", "reinforced"]
    vector = (await bench.embedder.embed([fact.content], tenant_id="acme"))[0]
    (found,) = await bench.store.nearest("facts", tenant_id="acme", dense=vector, limit=1)
    assert found.score == pytest.approx(1, abs=1e-3)
    await bench.agree()


async def test_a_bare_negation_closes_and_is_a_fact_itself(bench: Bench) -> None:
    talk = Talk(bench)
    await talk.tell("Likes tea", category="preference")
    await talk.tell("Likes olives", category="preference")
    await talk.tell("No longer likes tea", category="preference")
    assert await states(bench) == {
        "Likes tea": "superseded",
        "Likes olives": "active",
        "No longer likes tea": "active",
    }
    await bench.agree()


async def test_a_pending_fact_is_judged(bench: Bench) -> None:
    talk = Talk(bench)
    aisle = await talk.tell("Prefers aisle seats", category="preference")
    window = await talk.tell("Prefers window seats", category="preference")
    known, waits = (ids.fact_id(OWNER.key("acme"), each.observation_id) for each in (aisle, window))
    row = (await bench.facts())["Prefers window seats"]
    assert (row.state, row.waits_for) == ("pending", known)
    event = bench.events()[-1]
    assert event.decision is not None
    assert (event.action, event.decision.other_fact_id) == ("new", known)
    assert await believed(bench) == ["Prefers aisle seats"]
    judged = {"action": "judge", "target_fact_id": waits, "source_fact_ids": [known], "judgement": "supersede"}
    await bench.run(command(bench, judged))
    assert [change["verdict"] for change in bench.changes()] == ["applied"]
    assert [event.action for event in bench.events()[-2:]] == ["superseded", "approved"]
    assert await believed(bench) == ["Prefers window seats"]
    await bench.run(command(bench, judged, command_id="c2"))
    assert [change["verdict"] for change in bench.changes()] == ["stale"]
    await bench.agree()


async def test_what_begins_later_waits_and_a_newer_value_is_not_overwritten_by_it(bench: Bench) -> None:
    talk = Talk(bench)
    ahead = bench.now.moment + timedelta(days=30)
    await talk.tell("Lives in Prague")
    plan = await talk.tell("Lives in Vienna", valid_from=ahead)
    waits = ids.fact_id(OWNER.key("acme"), plan.observation_id)
    assert await states(bench) == {"Lives in Prague": "active", "Lives in Vienna": "pending"}
    await talk.tell("Lives in Brno")
    judged = {"action": "judge", "target_fact_id": waits, "judgement": "coexist"}
    await bench.run(command(bench, judged))
    assert [change["verdict"] for change in bench.changes()] == ["refused"]
    bench.now.moment = ahead + timedelta(days=1)
    await bench.run(command(bench, judged, command_id="c2"))
    assert await states(bench) == {
        "Lives in Prague": "superseded",
        "Lives in Brno": "superseded",
        "Lives in Vienna": "active",
    }
    await bench.agree()
