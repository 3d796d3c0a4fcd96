"""A fact that is forgotten as wrong gives back the facts that it had closed: commands on the real reflector."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.agents.reflector import reopening
from memstream.schemas.facts import StoredFact
from memstream.schemas.topics import RESULTS
from memstream.streams.engine.crash_points import Step
from tests.support.editor import OwnerEditor
from tests.support.embedded_stage import Bench, open_bench
from tests.support.record_builders import NOW
from tests.support.reflector_world import Talk, command, reflector

LATER = NOW + timedelta(days=1)
LEAVE_ENDS = NOW + timedelta(days=90)
STEPS: tuple[Step, ...] = ("decide", "table", "store", "publish")
GOOGLE, STRIPE, ADOBE = "Works at Google", "Works at Stripe", "Works at Adobe"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = await open_bench(tmp_path, "reflector")
    made.stage = reflector(made)
    yield made
    await made.store.close()


@pytest.fixture
def editor(bench: Bench) -> OwnerEditor:
    return OwnerEditor(bench, issued_by="anna@acme", issued_at=LATER)


async def states(bench: Bench) -> dict[str, str]:
    return {content: fact.state for content, fact in (await bench.facts()).items()}


async def fact_of(bench: Bench, content: str) -> StoredFact:
    return (await bench.facts())[content]


async def forgotten(bench: Bench, editor: OwnerEditor, content: str, **args: Any) -> Mapping[str, Any]:
    fact_id = (await fact_of(bench, content)).fact_id
    return await editor.done("facts.forget", fact_id=fact_id, **({"because": "wrong"} | args))


def stays(fact: StoredFact, why: str, other: StoredFact | None = None) -> dict[str, Any]:
    return {"fact_id": fact.fact_id, "why": why, "other_fact_id": None if other is None else other.fact_id}


async def test_a_wrong_fact_gives_back_the_fact_that_it_had_replaced(bench: Bench, editor: OwnerEditor) -> None:
    talk = Talk(bench)
    await talk.tell(GOOGLE)
    before = await fact_of(bench, GOOGLE)
    await talk.tell(STRIPE)
    made = await forgotten(bench, editor, STRIPE, reason="she never left")
    google, stripe = await fact_of(bench, GOOGLE), await fact_of(bench, STRIPE)
    assert made == {
        "fact_id": stripe.fact_id,
        "forgotten": True,
        "restored_fact_ids": [google.fact_id],
        "still_closed": [],
    }
    assert google == before.model_copy(update={"version": 3, "applied": google.applied})
    assert (stripe.state, stripe.supersedes) == ("forgotten", None)
    gone, back = bench.events()[-2:]
    assert (gone.action, gone.fact.fact_id, gone.reason) == ("forgotten", stripe.fact_id, "she never left")
    assert (back.action, back.fact.content, back.before is not None) == ("approved", GOOGLE, True)
    assert back.decision is not None
    assert (back.decision.stage, back.decision.other_fact_id) == ("restored", stripe.fact_id)
    assert (back.cause.command_id, back.cause.issued_by) == ("e1", "anna@acme")
    await bench.agree()


async def test_a_corrected_fact_comes_back_too(bench: Bench, editor: OwnerEditor) -> None:
    talk = Talk(bench)
    said = await talk.tell("Name is Jake", category="identity")
    before = await fact_of(bench, "Name is Jake")
    named = {"replaces_observation_id": said.observation_id, "is_correction": True}
    await talk.tell("Name is Jack", category="identity", **named)
    assert (await states(bench))["Name is Jake"] == "invalidated"
    await forgotten(bench, editor, "Name is Jack")
    jake = await fact_of(bench, "Name is Jake")
    assert jake == before.model_copy(update={"version": 3, "applied": jake.applied})
    await bench.agree()


async def test_a_fact_comes_back_with_its_own_end(bench: Bench, editor: OwnerEditor) -> None:
    talk = Talk(bench)
    await talk.tell(GOOGLE, valid_to=LEAVE_ENDS)
    await talk.tell(STRIPE)
    assert (await fact_of(bench, GOOGLE)).valid_to != LEAVE_ENDS
    await forgotten(bench, editor, STRIPE)
    assert (await fact_of(bench, GOOGLE)).valid_to == LEAVE_ENDS


@pytest.mark.parametrize("args", [{"because": None}, {"because": "over"}, {"restore": False}])
async def test_what_stays_closed_is_named_and_comes_back_when_it_is_asked_for(
    bench: Bench, editor: OwnerEditor, args: Mapping[str, Any]
) -> None:
    talk = Talk(bench)
    await talk.tell(GOOGLE)
    await talk.tell(STRIPE)
    made = await forgotten(bench, editor, STRIPE, **args)
    google = await fact_of(bench, GOOGLE)
    assert (made["restored_fact_ids"], made["still_closed"]) == ([], [stays(google, "not_asked")])
    assert await states(bench) == {GOOGLE: "superseded", STRIPE: "forgotten"}
    later = await forgotten(bench, editor, STRIPE, because=None, restore=True)
    assert (later["forgotten"], later["restored_fact_ids"]) == (False, [google.fact_id])
    assert await states(bench) == {GOOGLE: "active", STRIPE: "forgotten"}
    assert (await forgotten(bench, editor, STRIPE))["restored_fact_ids"] == []
    await bench.agree()


async def test_the_end_of_a_chain_gives_back_only_its_neighbour(bench: Bench, editor: OwnerEditor) -> None:
    talk = Talk(bench)
    for content in (GOOGLE, STRIPE, ADOBE):
        await talk.tell(content)
    await forgotten(bench, editor, ADOBE)
    assert await states(bench) == {GOOGLE: "superseded", STRIPE: "active", ADOBE: "forgotten"}


async def test_the_middle_of_a_chain_gives_back_nothing_until_its_successor_is_wrong_too(
    bench: Bench, editor: OwnerEditor
) -> None:
    talk = Talk(bench)
    for content in (GOOGLE, STRIPE, ADOBE):
        await talk.tell(content)
    made = await forgotten(bench, editor, STRIPE)
    google, adobe = await fact_of(bench, GOOGLE), await fact_of(bench, ADOBE)
    assert (made["restored_fact_ids"], made["still_closed"]) == ([], [stays(google, "replaced", adobe)])
    assert (google.state, google.superseded_by, google.valid_to) == ("superseded", adobe.fact_id, adobe.valid_from)
    assert (await forgotten(bench, editor, ADOBE))["restored_fact_ids"] == [google.fact_id]
    assert await states(bench) == {GOOGLE: "active", STRIPE: "forgotten", ADOBE: "forgotten"}
    await bench.agree()


@pytest.mark.parametrize(
    ("since", "why"),
    [
        ("Works at Adobe", "contradicted"),
        ("Does not work at Google", "contradicted"),
        ("works at google", "duplicate"),
        ("Is employed at Google", "duplicate"),
    ],
)
async def test_nothing_comes_back_against_a_fact_that_is_believed_meanwhile(
    bench: Bench, editor: OwnerEditor, since: str, why: str
) -> None:
    talk = Talk(bench)
    await talk.tell(GOOGLE)
    google = await fact_of(bench, GOOGLE)
    await talk.tell(STRIPE)
    other = (await editor.done("facts.add", content=since))["fact_id"]
    made = await forgotten(bench, editor, STRIPE)
    assert made["restored_fact_ids"] == []
    assert made["still_closed"] == [{"fact_id": google.fact_id, "why": why, "other_fact_id": other}]
    rows = [each for each in await bench.store.select("facts", tenant_id="acme") if each.id == google.fact_id]
    assert [each.payload["state"] for each in rows] == ["superseded"]
    await bench.agree()


async def test_a_fact_that_only_a_model_can_compare_keeps_it_closed(bench: Bench, editor: OwnerEditor) -> None:
    known = await editor.done("facts.add", content="Learned to ride")
    first = await editor.done("facts.add", content="Cannot ride")
    await editor.done("facts.supersede", fact_id=first["fact_id"], content="Hates horses")
    assert (await forgotten(bench, editor, "Hates horses"))["restored_fact_ids"] == [first["fact_id"]]
    await editor.done("facts.supersede", fact_id=first["fact_id"], content="Loves horses")
    await editor.done("facts.forget", fact_id=known["fact_id"])
    other = await editor.done("facts.add", content="Learned to ride a horse")
    made = await forgotten(bench, editor, "Loves horses")
    (closed,) = made["still_closed"]
    assert (closed["why"], closed["other_fact_id"]) == ("unclear", other["fact_id"])


async def test_of_two_closed_facts_that_contradict_each_other_one_comes_back(bench: Bench, editor: OwnerEditor) -> None:
    await Talk(bench).tell(GOOGLE)
    await editor.done("facts.add", content=ADOBE)
    await editor.done("facts.remember", content=STRIPE)
    assert await states(bench) == {GOOGLE: "superseded", ADOBE: "superseded", STRIPE: "active"}
    made = await forgotten(bench, editor, STRIPE)
    (back,), (closed,) = made["restored_fact_ids"], made["still_closed"]
    assert (closed["why"], closed["other_fact_id"]) == ("contradicted", back)
    assert sorted((await states(bench)).values()) == ["active", "forgotten", "superseded"]
    await bench.agree()


async def test_a_merged_fact_stays_closed(bench: Bench, editor: OwnerEditor) -> None:
    cat = await editor.done("facts.remember", content="Has a cat")
    tom = await editor.done("facts.remember", content="Keeps a tabby called Tom")
    await editor.done("facts.merge", fact_ids=[cat["fact_id"], tom["fact_id"]], content="Has a tabby cat, Tom")
    made = await forgotten(bench, editor, "Has a tabby cat, Tom")
    (closed,) = made["still_closed"]
    assert (closed["fact_id"], closed["why"]) == (tom["fact_id"], "merged")


async def test_a_fact_that_was_never_believed_stays_closed(bench: Bench, editor: OwnerEditor) -> None:
    await editor.done("facts.remember", content=GOOGLE)
    await editor.done("facts.remember", content=STRIPE, trust="assistant")
    await editor.done("facts.remember", content=ADOBE)
    assert await states(bench) == {GOOGLE: "superseded", STRIPE: "superseded", ADOBE: "active"}
    made = await forgotten(bench, editor, ADOBE)
    assert made["still_closed"] == [stays(await fact_of(bench, STRIPE), "not_believed")]
    assert await states(bench) == {GOOGLE: "active", STRIPE: "superseded", ADOBE: "forgotten"}


async def test_more_facts_than_one_edit_may_restore_come_back_with_the_next(
    bench: Bench, editor: OwnerEditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reopening, "REOPENED_MAX", 1)
    likes = [await editor.done("facts.remember", content=f"Likes {each}") for each in ("tea", "coffee")]
    for each in likes:
        await editor.done("facts.supersede", fact_id=each["fact_id"], content="Likes water only")
    first = await forgotten(bench, editor, "Likes water only")
    assert len(first["restored_fact_ids"]) == 1
    assert [each["why"] for each in first["still_closed"]] == ["too_many"]
    again = await forgotten(bench, editor, "Likes water only")
    restored = {*first["restored_fact_ids"], *again["restored_fact_ids"]}
    assert restored == {each["fact_id"] for each in likes}
    await bench.agree()


@pytest.mark.parametrize("step", STEPS)
async def test_killed_and_handed_in_again_a_restore_has_one_effect_and_one_answer(bench: Bench, step: Step) -> None:
    talk = Talk(bench)
    await talk.tell(GOOGLE)
    await talk.tell(STRIPE)
    args = {"fact_id": (await fact_of(bench, STRIPE)).fact_id, "because": "wrong"}
    edit = command(bench, command_id="e1", kind="facts.forget", args=args, issued_at=LATER)
    await bench.killed(edit, step)
    await bench.run(edit)
    assert len(set(bench.values(RESULTS.name))) == 1
    rows = {content: (fact.state, fact.version) for content, fact in (await bench.facts()).items()}
    assert rows == {GOOGLE: ("active", 3), STRIPE: ("forgotten", 2)}
    await bench.agree()
