"""Requests to forget and the statements that they take back: every order of arrival gives the same memory."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memstream.agents.reflector.forget_requests import KEPT, KEPT_FOR
from memstream.agents.reflector.rows import LedgerRow
from memstream.schemas.facts import StoredFact
from memstream.streams.log.port import Record
from tests.support.editor import OwnerEditor
from tests.support.embedded_stage import Bench, open_bench
from tests.support.record_builders import NOW, OWNER
from tests.support.reflector_world import Talk, command, reflector

CORPUS = Path(__file__).parents[1] / "corpora" / "forget_orders"
CASES = [case for name in ("tuned", "unseen") for case in json.loads((CORPUS / f"{name}.json").read_text())]
OWNER_KEY = OWNER.key("acme")
Event = dict[str, Any]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = await open_bench(tmp_path, "reflector")
    made.stage = reflector(made)
    yield made
    await made.store.close()


def turn(bench: Bench, place: int, event: Event, **fields: Any) -> Record:
    """Return the record of an event in a session of its own, so that any order of arrival is possible."""
    talk = Talk(bench, session_id=f"s{place}", **fields)
    asks = "forget" in event
    said = talk.says(
        event["forget"] if asks else event["says"],
        subject=event.get("subject", "user"),
        retracts=asks,
        is_correction=event.get("wrong", False),
    )
    return talk.turn(said, occurred_at=NOW + timedelta(minutes=event["at"]))


async def believed(bench: Bench) -> list[tuple[str, str, int, list[str]]]:
    """Return subject, content, reinforcements and sessions of the evidence of each believed fact."""
    rows = [StoredFact.from_payload(each.payload) for each in await bench.store.select("facts", tenant_id="acme")]
    return sorted(
        (row.subject, row.content, row.reinforcement_count, sorted(each.session_id for each in row.evidence))
        for row in rows
        if row.state in ("active", "pending")
    )


async def run_events(folder: Path, first: Sequence[Event], events: Sequence[tuple[int, Event]]) -> Any:
    bench = await open_bench(folder, "reflector")
    try:
        bench.stage = reflector(bench)
        for place, event in [*enumerate(first, 100), *events]:
            await bench.run(turn(bench, place, event))
        await bench.agree()
        return await believed(bench)
    finally:
        await bench.store.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
async def test_every_order_gives_the_same_memory(tmp_path: Path, case: dict[str, Any]) -> None:
    found = [
        await run_events(tmp_path / str(n), case.get("first", ()), order)
        for n, order in enumerate(itertools.permutations(enumerate(case["any"])))
    ]
    assert [sorted(content for _, content, _, _ in each) for each in found] == [case["believed"]] * len(found)
    assert all(each == found[0] for each in found)


EVENTS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["says", "forget"]), st.sampled_from(["Has a cat", "Likes tea"])),
    min_size=2,
    max_size=4,
)


@pytest.mark.long
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS, data=st.data())
async def test_generated_events_give_the_same_memory_in_two_orders(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[int, str, str]], data: st.DataObject
) -> None:
    numbered = list(enumerate({"at": at, kind: content} for at, kind, content in events))
    found = [
        await run_events(tmp_path_factory.mktemp("orders"), (), order)
        for order in (numbered, data.draw(st.permutations(numbered)))
    ]
    assert found[0] == found[1]


async def test_within_one_turn_the_order_of_the_turn_decides(bench: Bench) -> None:
    talk = Talk(bench)
    await bench.run(talk.turn(talk.says("Works at Google", retracts=True), talk.says("Works at Google Maps")))
    assert await believed(bench) == [("user", "Works at Google Maps", 0, ["s1"])]


async def test_a_request_that_names_an_entry_takes_back_its_observation_in_any_words(bench: Bench) -> None:
    late = Talk(bench, session_id="s2")
    said = late.says("Works at Google")
    asks = Talk(bench).says("Job at that company", retracts=True, replaces_observation_id=said.observation_id)
    await bench.run(Talk(bench).turn(asks, occurred_at=NOW + timedelta(hours=1)))
    await bench.run(late.turn(said))
    assert await believed(bench) == []


async def test_the_forgotten_statement_is_a_row_with_two_events(bench: Bench) -> None:
    await bench.run(turn(bench, 1, {"at": 2, "forget": "Has a cat"}))
    await bench.run(turn(bench, 2, {"at": 1, "says": "Has a cat"}))
    new, gone = bench.events()
    assert (new.action, gone.action, gone.fact.version) == ("new", "forgotten", 2)
    assert gone.reason == "the user asked to forget it before it arrived"
    assert gone.decision is not None
    assert gone.decision.stage == "retraction"


@pytest.mark.parametrize("step", ["decide", "table", "store", "publish"])
async def test_a_crash_at_any_step_forgets_it_once(bench: Bench, step: Any) -> None:
    await bench.killed(turn(bench, 1, {"at": 2, "forget": "Has a cat"}), step)
    late = turn(bench, 2, {"at": 1, "says": "Has a cat"})
    await bench.killed(late, step)
    await bench.run(late)
    assert await believed(bench) == []
    assert [fact.version for fact in (await bench.facts()).values()] == [2]
    await bench.agree()


async def test_turns_that_are_decided_together_see_the_request_of_an_earlier_one(bench: Bench) -> None:
    asks = turn(bench, 1, {"at": 2, "forget": "Has a cat"})
    late = turn(bench, 2, {"at": 1, "says": "Has a cat"})
    await bench.run(asks, ahead=[late])
    assert bench.covered == [late]
    assert await believed(bench) == []


async def test_requests_are_limited_in_number_and_in_time(bench: Bench) -> None:
    for n in range(KEPT + 1):
        await bench.run(turn(bench, n, {"at": 10 + n, "forget": f"Owns bicycle {n}"}))
    kept = LedgerRow.load(bench.rows, OWNER_KEY).requests
    assert [each.content for each in kept] == [f"Owns bicycle {n}" for n in range(1, KEPT + 1)]
    bench.now.moment += KEPT_FOR
    await bench.run(turn(bench, 200, {"at": 1, "forget": "Has a cat"}))
    assert [each.content for each in LedgerRow.load(bench.rows, OWNER_KEY).requests] == ["Has a cat"]


@pytest.mark.parametrize(
    ("kind", "args"),
    [("facts.retract", {"turn_id": "t1"}), ("facts.erase", {})],
)
async def test_a_request_whose_turn_is_taken_back_has_no_effect(bench: Bench, kind: str, args: dict[str, str]) -> None:
    await bench.run(turn(bench, 1, {"at": 2, "forget": "Has a cat"}))
    editor = OwnerEditor(bench, issued_by="anna@acme", issued_at=NOW)
    await editor.done(kind, user_id="u1", session_id="s1", **args)
    await bench.run(turn(bench, 2, {"at": 1, "says": "Has a cat"}))
    assert [content for _, content, _, _ in await believed(bench)] == ["Has a cat"]


async def test_an_edit_that_was_issued_before_the_request_is_refused(bench: Bench) -> None:
    await bench.run(turn(bench, 1, {"at": 2, "forget": "Has a cat"}))
    before = OwnerEditor(bench, issued_by="anna@acme", issued_at=NOW + timedelta(minutes=1))
    assert await before.refused("facts.remember", content="Has a cat") == "forgotten"
    after = OwnerEditor(bench, issued_by="anna@acme", issued_at=NOW + timedelta(minutes=3))
    after.sent = before.sent
    await after.done("facts.remember", content="Has a cat")
    assert [content for _, content, _, _ in await believed(bench)] == ["Has a cat"]


async def test_an_imported_statement_that_is_older_is_refused(bench: Bench) -> None:
    await bench.run(turn(bench, 1, {"at": 2, "forget": "Has a cat"}))
    editor = OwnerEditor(bench, issued_by="anna@acme", issued_at=NOW + timedelta(days=1))
    facts = [{"line": n, "content": content, "said_at": at.isoformat()} for n, content, at in LINES]
    exported_at = (NOW + timedelta(days=1)).isoformat()
    made = await editor.done("facts.import", file="mem0.json", exported_at=exported_at, facts=facts)
    assert [each["line"] for each in made["refused"]] == [1]
    assert [content for _, content, _, _ in await believed(bench)] == ["Has a cat", "Likes tea"]


LINES = (
    (1, "Has a cat", NOW),
    (2, "Has a cat", NOW + timedelta(hours=1)),
    (3, "Likes tea", NOW),
)


async def test_a_proposal_from_older_turns_is_stale(bench: Bench) -> None:
    await bench.run(turn(bench, 1, {"at": 2, "forget": "Has a cat"}))
    change = {"action": "new", "subject": "user", "content": "Has a cat", "category": "attribute"}
    await bench.run(command(bench, change, issued_at=NOW))
    assert await believed(bench) == []
    await bench.run(command(bench, change, command_id="c2", issued_at=NOW + timedelta(hours=1)))
    assert [content for _, content, _, _ in await believed(bench)] == ["Has a cat"]
