"""The observer: what becomes of a turn, of its answer, and of what the answer gets wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from memstream.adapters.embedders.hashing import HashingEmbedder
from memstream.adapters.vectors.factory import open_store
from memstream.memory.policies import CapturePolicy, MemoryPolicy, ObservePolicy, RoutingPolicy, WorkingSetPolicy
from memstream.schemas import ids
from memstream.schemas.errors import Poison
from memstream.schemas.observations import Evicted
from memstream.schemas.topics import OBSERVATIONS, TURNS
from memstream.schemas.working_set import StoredWorkingEntry
from tests.support.model_server import Answer, Ask, Script, observing
from tests.support.observer_world import SESSION, TIMESTAMP, ObserverWorld
from tests.support.openai_bodies import OBSERVATION
from tests.support.record_builders import NOW

Known = Mapping[str, Sequence[Mapping[str, JsonValue]]]
GOOGLE: dict[str, Sequence[Mapping[str, JsonValue]]] = {
    "I work at Google": [{"content": "Works at Google", "category": "profession", "durability": "permanent"}]
}


def item(content: str, evidence: str, **fields: Any) -> dict[str, Any]:
    """An item about the subject `word`, so that a quote with a word carries any content."""
    return {**OBSERVATION, "subject": "word", "content": content, "evidence": evidence, **fields}


def answering(*items: dict[str, Any]) -> Script:
    def script(ask: Ask) -> Answer:
        return {"observations": list(items)}

    return script


# ------------------------------------------------------------------------------------------------ one turn
async def test_a_turn_becomes_a_record_a_working_entry_and_its_projection() -> None:
    world = ObserverWorld(observing(GOOGLE))
    await world.deliver(world.turn("Well, I work at Google.", occurred_at="2026-11-20T10:00:00Z", agent_id="bot"))
    (record,) = world.observed()
    (seen,) = record.observations
    key = ids.session_key(*SESSION)
    assert seen.observation_id == seen.entry_id == ids.observation_id(key, "t1", "user", "Works at Google")
    assert (seen.source_role, seen.evidence, seen.valid_from) == ("user", "I work at Google", None)
    assert (record.turn_number, record.agent_id, record.owner.key("acme")) == (1, "bot", "acme/user/u1")
    assert record.occurred_at.isoformat() == "2026-11-20T10:00:00+00:00"
    assert record.cause.model == "scripted"
    assert record.cause.usage is not None
    assert (record.cause.prompt or "").startswith("observe/v2:sha256")
    assert world.working() == world.projected() == ["Works at Google"]
    (entry,) = world.row().working.entries
    assert entry.salience == pytest.approx(0.7 * 2**-0.5)
    (point,) = world.points.of("working").values()
    assert StoredWorkingEntry.from_payload(point.payload).to_payload() == point.payload, "as the contract has it"
    assert point.payload["entry_id"] == point.id == seen.entry_id
    assert (point.payload["owner_key"], point.payload["turn_number"]) == ("acme/user/u1", 1)
    (out,) = world.harness.on(OBSERVATIONS.name)
    headers = dict(out.headers)
    assert out.key == b"acme/user/u1"
    assert headers["ce_id"].decode() == ids.observed_id(key, "t1")
    assert (headers["ce_source"], headers["ce_subject"]) == (b"/memstream/observer", b"acme/user/u1")
    assert headers["ce_type"] == b"memstream.turn.observed.v1"


async def test_the_records_timestamp_is_the_time_of_a_turn_without_one() -> None:
    world = ObserverWorld()
    await world.deliver(world.turn(timestamp=1_700_000_000_123))
    assert world.observed()[0].occurred_at.isoformat() == "2023-11-14T22:13:20.123000+00:00"


# the time of reading counts; what the clock of the world says then is NOW and some milliseconds
UNDATED = {"none": -1, "zero": 0, "seconds": 1_795_168_800, "year 2015": 1_420_070_400_000, "no time": 2**62}
DAY_MS = 86_400_000


@pytest.mark.parametrize("timestamp", [*UNDATED.values(), TIMESTAMP + 2 * DAY_MS], ids=[*UNDATED, "two days ahead"])
async def test_a_timestamp_that_is_no_time_counts_as_the_time_of_reading(
    timestamp: int, capsys: pytest.CaptureFixture[str]
) -> None:
    world = ObserverWorld()
    await world.deliver(
        world.turn("One.", timestamp=timestamp),
        world.turn("Two.", "t2", timestamp=timestamp),
        world.turn("Three.", "t3", session=("acme", "u1", "s2"), timestamp=timestamp),
        world.turn("Four.", "t4", timestamp=timestamp, occurred_at="2020-05-01T10:00:00Z"),
    )
    first, second, third, fourth = (each.occurred_at for each in world.observed())
    assert NOW <= first <= second <= third <= NOW + timedelta(seconds=1)
    assert fourth.isoformat() == "2020-05-01T10:00:00+00:00", "a time of its own needs no timestamp"
    assert world.counted()["record_undated"] == 3
    assert capsys.readouterr().out.count("record_timestamp_is_no_time") == 1, "one warning a producer"


async def test_each_producer_without_timestamps_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    world = ObserverWorld()
    sources = [b"/shop", b"/desk", b"/shop"]
    for n, source in enumerate(sources):
        await world.deliver(world.turn("Hm.", f"t{n}", timestamp=-1, headers=(("ce_source", source),)))
    assert capsys.readouterr().out.count("record_timestamp_is_no_time") == 2


async def test_within_a_session_the_log_decides_the_order() -> None:
    world = ObserverWorld()
    given = [
        ("t1", {"timestamp": TIMESTAMP}),
        ("t2", {"timestamp": TIMESTAMP - 400 * DAY_MS}),
        ("t3", {"timestamp": TIMESTAMP + 5}),
        ("t4", {"timestamp": TIMESTAMP, "occurred_at": "2021-05-01T10:00:00Z"}),
        ("t5", {"timestamp": TIMESTAMP - 5}),
        ("put back", {"timestamp": TIMESTAMP - 6, "headers": (("memstream-redriven", b"memory.turns.dlq/0@1"),)}),
    ]
    await world.deliver(*(world.turn("Hm.", turn_id, **fields) for turn_id, fields in given))
    at = {each.turn_id: each.occurred_at for each in world.observed()}
    said = {turn_id: round((time - NOW).total_seconds() * 1_000) for turn_id, time in at.items() if turn_id != "t4"}
    assert said == {"t1": 0, "t2": 0, "t3": 5, "t5": 5, "put back": -6}
    assert at["t4"].year == 2021, "what a turn says of its own time holds"
    assert world.row().said_until == at["t3"]


async def test_an_undated_turn_that_waits_keeps_the_time_of_reading() -> None:
    world = ObserverWorld(policy=MemoryPolicy(observe=ObservePolicy(unobserved_tokens=4)))
    await world.deliver(world.turn("One.", timestamp=-1))
    assert world.observed() == []
    world.clock.seconds += 3_600
    await world.deliver(world.turn("Two, and that is enough.", "t2", timestamp=-1))
    first, second = (each.occurred_at for each in world.observed())
    assert first <= NOW + timedelta(seconds=1)
    assert second >= NOW + timedelta(seconds=3_600)


async def test_what_could_not_be_read_is_named_in_the_cause() -> None:
    world = ObserverWorld(observing(GOOGLE))
    wizard = {"role": "wizard", "content": "Abracadabra, my password is hunter2."}
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    await world.deliver(
        world.turn([wizard, {"role": "user", "content": "I work at Google. \ud83d"}, image]),
        world.turn([image], "t2"),
        world.turn("Hm.", "t3"),
    )
    first, second, third = (each.cause for each in world.observed())
    whys = [(each.index, each.why) for each in first.unread]
    assert whys == [(0, "the role wizard"), (2, "parts without text: image_url")]
    assert first.repaired_characters == 1
    assert [each.why for each in second.unread] == ["parts without text: image_url"]
    assert (third.unread, third.repaired_characters) == ((), 0)
    assert [each.content for each in world.observed()[0].observations] == ["Works at Google"]
    assert (world.counted()["message_unread"], world.counted()["turn_repaired"]) == (3, 1)


async def test_turns_are_numbered_and_an_empty_one_counts_too() -> None:
    world = ObserverWorld(observing(GOOGLE))
    await world.deliver(world.turn("I work at Google."), world.turn("Hm.", "t2"), world.turn("So.", "t3"))
    assert [(r.turn_id, r.turn_number, len(r.observations)) for r in world.observed()] == [
        ("t1", 1, 1),
        ("t2", 2, 0),
        ("t3", 3, 0),
    ]
    (entry,) = world.row().working.entries
    assert entry.salience == pytest.approx(0.7 * 4**-0.5)


@pytest.mark.parametrize(
    "turn",
    [
        {"text": None, "ends_session": True},
        {"text": "   "},
        {"text": [{"role": "tool", "content": "42"}, {"role": "system", "content": "be nice"}]},
        {"text": [{"role": "assistant", "content": None, "tool_calls": []}]},
        {"text": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
    ],
)
async def test_a_turn_without_words_needs_no_model_and_gives_its_record(turn: dict[str, Any]) -> None:
    world = ObserverWorld()
    await world.deliver(world.turn(**turn))
    assert world.model.asks == []
    (record,) = world.observed()
    assert (record.turn_number, record.observations, record.cause.model, record.cause.usage) == (1, (), None, None)


async def test_capture_can_be_switched_off() -> None:
    world = ObserverWorld(policy=MemoryPolicy(capture=CapturePolicy(enabled=False)))
    await world.deliver(world.turn("I work at Google."))
    assert (world.model.asks, len(world.observed())) == ([], 1)


async def test_a_session_goes_on_after_its_end() -> None:
    world = ObserverWorld()
    await world.deliver(world.turn(None, ends_session=True), world.turn("Again", "t2"))
    assert [record.turn_number for record in world.observed()] == [1, 2]


async def test_the_prompt_shows_the_working_set_and_what_was_said_before() -> None:
    world = ObserverWorld(observing(GOOGLE))
    talk = [{"role": "user", "content": "I work at Google."}, {"role": "assistant", "content": "Nice"}]
    await world.deliver(world.turn(talk), world.turn("And now?", "t2"))
    seen = world.model.asks[-1].prompt
    assert [shown.content for shown in seen.working.values()] == ["Works at Google"]
    assert [shown.content for shown in seen.context.values()] == ["I work at Google.", "Nice"]
    assert seen.turns == {"t1": "user: And now?"}


@pytest.mark.parametrize(
    ("fields", "owner"),
    [
        ({}, "acme/user/u1"),
        ({"scope": "agent", "agent_id": "a/1"}, "acme/agent/a%2F1"),
        ({"scope": "org", "org_id": "o"}, "acme/org/o"),
        ({"scope": "group", "group_id": "g", "org_id": "o"}, "acme/group/g"),
    ],
)
async def test_whose_a_turn_is(fields: dict[str, Any], owner: str) -> None:
    world = ObserverWorld(observing(GOOGLE))
    await world.deliver(world.turn("I work at Google.", **fields))
    (out,) = world.harness.on(OBSERVATIONS.name)
    assert (out.key or b"").decode() == owner
    assert next(iter(world.points.of("working").values())).payload["owner_key"] == owner


async def test_the_policy_says_whose_a_turn_is_that_does_not() -> None:
    world = ObserverWorld(policy=MemoryPolicy(routing=RoutingPolicy(scope="agent")))
    await world.deliver(world.turn(agent_id="bot"), world.turn(turn_id="t2"))
    assert [record.owner.key("acme") for record in world.observed()] == ["acme/agent/bot"]
    assert [letter["memstream-reason"] for letter in world.dead_letters()] == ["invalid"]


# ------------------------------------------------------------------------------------------------ bad turns
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"turn_id": ""}, "invalid"),
        ({"turn_id": "a\nb"}, "invalid"),
        ({"turn_id": "t" * 129}, "invalid"),
        ({"text": None}, "invalid"),
        ({"text": [{"role": "wizard", "content": "x"}]}, "invalid"),
        ({"text": [{"role": "user", "content": "x"}] * 65}, "invalid"),
        ({"scope": "agent"}, "invalid"),
        ({"metadata": {"a": "x" * 5_000}}, "invalid"),
        ({"occurred_at": "2026-11-20T10:00:00"}, "invalid"),
        ({"occurred_at": "9999-12-31T23:59:59-12:00"}, "invalid"),
        ({"text": "x" * 256 * 1024}, "oversized"),
        ({"headers": (("ce_type", b"memstream.turn.v2"),)}, "unsupported_version"),
    ],
)
async def test_a_bad_turn_is_a_dead_letter_and_the_next_one_takes_effect(fields: dict[str, Any], reason: str) -> None:
    world = ObserverWorld()
    bad = world.turn(**fields)
    await world.deliver(bad, world.turn("Fine", "t-fine"))
    (letter,) = world.harness.on(TURNS.name + ".dlq")
    assert (letter.value, letter.key) == (bad.value, bad.key)
    assert [each["memstream-reason"] for each in world.dead_letters()] == [reason]
    assert [record.turn_number for record in world.observed()] == [1]


@pytest.mark.parametrize("value", [None, b"", b"{", b"null", b"[1]", b"\xff\xfe", b"[" * 100_000, b'"\\ud800"'])
async def test_garbage_is_a_dead_letter(value: bytes | None) -> None:
    world = ObserverWorld()
    await world.deliver(world.record(TURNS.name, SESSION, value), world.turn())
    assert len(world.dead_letters()) == 1
    assert len(world.observed()) == 1


# ------------------------------------------------------------------------------------------------ answers
async def test_only_what_was_said_in_that_very_turn_is_believed() -> None:
    world = ObserverWorld(
        answering(
            item("Works at Google", "i  WORK\nat google"),
            item("Likes tea", "I like tea"),
            item("Was greeted as friend", "Hello friend"),
        )
    )
    talk = [
        {"role": "user", "content": "I work at Google."},
        {"role": "assistant", "content": "x" * 600 + "I like tea"},
    ]
    await world.deliver(world.turn("Hello friend", "t0", session=SESSION))
    await world.deliver(world.turn(talk))
    assert world.contents() == [["Was greeted as friend"], ["Works at Google"]]
    assert world.counted()["invented"] == 4
    refused = [record.cause.refused for record in world.observed()]
    assert [(each.statements, {it.why for it in each.listed}) for each in refused if each is not None] == [
        (2, {"invented"}),
        (2, {"invented"}),
    ]


async def test_who_said_it() -> None:
    world = ObserverWorld(answering(item("Likes tea", "she likes tea"), item("Likes coffee", "and likes coffee")))
    await world.deliver(
        world.turn(
            [
                {"role": "assistant", "content": "So she likes tea and likes coffee?"},
                {"role": "user", "content": "Yes, she likes tea."},
            ]
        )
    )
    (record,) = world.observed()
    assert [each.source_role for each in record.observations] == ["user", "assistant"]


async def test_the_cap_is_applied_last() -> None:
    items = [item("Invented", "nowhere"), *(item(f"Says {n}", "very plain word") for n in (1, 1, 2, 3, 4))]
    world = ObserverWorld(answering(*items), policy=MemoryPolicy(capture=CapturePolicy(max_per_message=3)))
    await world.deliver(world.turn("a very plain word"))
    assert world.contents() == [["Says 1", "Says 2", "Says 3"]]
    assert world.counted() == {"evidence_asked": 5, "invented": 1, "repeated_observation": 1, "over_the_cap": 1}


async def test_with_one_turn_there_is_no_question_which_is_meant() -> None:
    world = ObserverWorld(
        answering(
            item("One", "very plain word", turn=None),
            item("Two", "very plain word", turn="[t1]"),
            item("Three", "very plain word", turn="t9"),
        )
    )
    await world.deliver(world.turn("a very plain word"))
    assert world.contents() == [["One", "Two", "Three"]]
    assert world.counted()["unknown_id"] == 1


async def test_what_replaces_something_takes_it_out_also_when_it_is_pinned() -> None:
    known: Known = {
        "I work at Google": [{"content": "Works at Google", "pinned": True}],
        "I joined Stripe": [{"content": "Works at Stripe", "replaces": "Works at Google", "is_correction": True}],
    }
    world = ObserverWorld(observing(known))
    await world.deliver(world.turn("I work at Google."), world.turn("I joined Stripe.", "t2"))
    first, second = world.observed()
    assert second.observations[0].replaces_observation_id == first.observations[0].observation_id
    assert second.observations[0].is_correction
    assert second.evicted == ()
    assert world.working() == world.projected() == ["Works at Stripe"]


async def test_an_id_that_was_not_shown_is_dropped_and_the_statement_stays() -> None:
    world = ObserverWorld(
        answering(
            item("A", "very plain word", replaces="w1"),
            item("B", "very plain word", replaces="o2"),
            item("C", "very plain word", replaces="c1"),
        )
    )
    await world.deliver(world.turn("a very plain word"))
    assert world.contents() == [["A", "B", "C"]]
    assert [each.replaces_observation_id for each in world.observed()[0].observations] == [None, None, None]
    assert world.counted()["unknown_id"] == 3


async def test_an_earlier_observation_of_the_answer_can_be_replaced() -> None:
    world = ObserverWorld(
        answering(
            item("Junk", "nowhere"),
            item("Works at Acme", "First Acme, no"),
            item("Works at Bolt", "Acme, no, Bolt", replaces="[o2]"),
        )
    )
    await world.deliver(world.turn("First Acme, no, Bolt."))
    (record,) = world.observed()
    assert record.observations[1].replaces_observation_id == record.observations[0].observation_id
    assert world.working() == ["Works at Bolt"]


async def test_said_again_is_no_second_entry_and_no_replacement() -> None:
    known: Known = {
        "Tea": [{"content": "Likes tea", "durability": "session"}],
        "Ah, tea": [{"content": "likes  TEA", "durability": "permanent", "replaces": "Likes tea"}],
    }
    world = ObserverWorld(observing(known))
    await world.deliver(world.turn("Tea."), world.turn("Ah, tea.", "t2"))
    _, second = world.observed()
    assert second.observations[0].replaces_observation_id is None
    (entry,) = world.row().working.entries
    assert (entry.content, entry.durability) == ("Likes tea", "permanent")
    assert entry.entry_id == second.observations[0].observation_id
    assert list(world.points.of("working")) == [entry.entry_id]


async def test_what_must_make_room_is_reported_when_it_was_lasting() -> None:
    known: dict[str, list[dict[str, JsonValue]]] = {
        f"fact {n} here": [{"content": f"Fact {n}", "importance": n / 10}] for n in range(1, 5)
    }
    known["fact 2 here"][0]["durability"] = "session"
    policy = MemoryPolicy(working=WorkingSetPolicy(capacity=2, max_pinned=1))
    world = ObserverWorld(observing(known), policy=policy)
    for n in range(1, 5):
        await world.deliver(world.turn(f"fact {n} here", f"t{n}"))
    gone = world.observed()[0].observations[0]
    evicted = [record.evicted for record in world.observed()]
    lasting = Evicted(entry_id=gone.entry_id, observation_id=gone.observation_id, durability="persistent")
    assert evicted == [(), (), (lasting,), ()]
    assert world.counted()["evicted"] == 2
    assert sorted(world.working()) == world.projected() == ["Fact 3", "Fact 4"]


async def test_a_pin_without_a_free_slot_is_kept_unpinned_and_counted() -> None:
    world = ObserverWorld(answering(*(item(f"Pin {n}", "very plain word", pinned=True) for n in range(3))))
    await world.deliver(world.turn("a very plain word"))
    assert sorted(entry.pinned for entry in world.row().working.entries) == [False, True, True]
    assert world.counted()["pin_refused"] == 1


@pytest.mark.parametrize(
    ("turn", "model", "kept"),
    [(None, "public", "public"), ("internal", "public", "internal"), ("secret", "internal", "secret"),
     ("public", "secret", "secret")],
)  # fmt: skip
async def test_a_statement_is_at_least_as_sensitive_as_its_turn(turn: str | None, model: str, kept: str) -> None:
    world = ObserverWorld(answering(item("A", "very plain word", sensitivity=model)))
    await world.deliver(world.turn("a very plain word", sensitivity=turn))
    assert world.observed()[0].observations[0].sensitivity == kept
    assert world.row().working.entries[0].sensitivity == kept


async def test_only_tasks_are_due() -> None:
    due = "2026-12-01T10:00:00Z"
    world = ObserverWorld(
        answering(
            item("A", "very plain word", due_at=due),
            item("B", "very plain word", due_at=due, category="task", valid_to="2027-01-01"),
        )
    )
    await world.deliver(world.turn("a very plain word"))
    first, second = world.observed()[0].observations
    assert first.due_at is None
    assert second.due_at is not None
    assert second.valid_to is not None


async def test_an_unusable_answer_is_a_dead_letter_and_the_turn_can_be_put_back() -> None:
    def script(ask: Ask) -> Answer:
        if ask.number == 1:
            raise Poison("refused_by_model", "no usable answer")
        return observing(GOOGLE)(ask)

    world = ObserverWorld(script)
    bad = world.turn("I work at Google.")
    await world.deliver(bad, world.turn("Hm", "t2"))
    (letter,) = world.dead_letters()
    assert (letter["memstream-reason"], letter["kafka_dlt-original-offset"]) == ("refused_by_model", "0")
    assert (letter["memstream-tenant"], letter["memstream-stage"]) == ("acme", "observer")
    assert [record.turn_id for record in world.observed()] == ["t2"]
    await world.deliver(bad)  # delivered again at the same offset: it was refused
    assert len(world.model.asks) == 2
    await world.deliver(world.turn("I work at Google."))  # put back: the same value at another offset
    assert [(r.turn_id, r.turn_number) for r in world.observed()] == [("t2", 1), ("t1", 2)]
    assert len(world.dead_letters()) == 1


async def test_the_same_over_the_real_engine(tmp_path: Path) -> None:
    store = await open_store(f"embedded://{tmp_path}", embedder=HashingEmbedder().identity, holds_folder=True)
    try:
        await store.ensure("working", "labels", "turns")
        known = GOOGLE | {"I joined Stripe": [{"content": "Works at Stripe", "replaces": "Works at Google"}]}
        world = ObserverWorld(observing(known), store=store)
        await world.deliver(world.turn("I work at Google."))
        found = await store.select("working", tenant_id="acme")
        assert [each.payload["content"] for each in found] == ["Works at Google"]
        await world.deliver(world.turn("I joined Stripe.", "t2"))
        (found_now,) = await store.select("working", tenant_id="acme")
        assert found_now.payload["content"] == "Works at Stripe"
        assert found_now.payload["turn_number"] == 2
    finally:
        await store.close()


# ------------------------------------------------------------------------------------------------ apart
WHO = st.sampled_from([(t, u, s) for t in ("acme", "globex") for u in ("u1", "u/1") for s in ("s1", "1/s1")])


@given(st.lists(st.tuples(WHO, st.sampled_from(["t1", "t2"]), st.booleans()), max_size=12))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
async def test_users_and_tenants_with_the_same_ids_never_meet(
    steps: list[tuple[tuple[str, str, str], str, bool]],
) -> None:
    """Sessions side by side give what each gives alone, whatever ids they share."""

    def script(ask: Ask) -> Answer:
        if "away" in next(iter(ask.turns.values())):
            raise Poison("refused_by_model", "no")
        known = [shown.content for shown in ask.prompt.working.values()]
        return {"observations": [item(f"Said after {len(known)}", "very plain word")]}

    def turn(world: ObserverWorld, who: tuple[str, str, str], turn_id: str, bad: bool) -> Any:
        return world.turn("away word" if bad else "a very plain word", turn_id, session=who)

    policy = MemoryPolicy(observe=ObservePolicy(patience=0.02))
    together = ObserverWorld(script, policy=policy)
    for who, turn_id, bad in steps:
        await together.deliver(turn(together, who, turn_id, bad))
    for who in {who for who, _, _ in steps}:
        alone = ObserverWorld(script, policy=policy)
        for other, turn_id, bad in steps:
            if other == who:
                await alone.deliver(turn(alone, who, turn_id, bad))
        row, mine = together.row(who), alone.row(who)
        assert row.working == mine.working
        assert (row.turns, row.recent, row.seen) == (mine.turns, mine.recent, mine.seen)
        assert together.projected(who) == alone.projected(who)
        fields = ("tenant_id", "user_id", "session_id")
        records = [r for r in together.observed() if tuple(getattr(r, f) for f in fields) == who]
        assert [(r.turn_id, r.turn_number, r.observations) for r in records] == [
            (r.turn_id, r.turn_number, r.observations) for r in alone.observed()
        ]


# ------------------------------------------------------------------------------------------------ trust
async def test_what_an_assistant_says_replaces_and_pins_nothing_of_the_user() -> None:
    world = ObserverWorld(observing(GOOGLE))
    await world.deliver(world.turn("I work at Google."))
    world.model.script = answering(
        item("Works at Stripe", "you work at Stripe", subject="user", replaces="w1", pinned=True)
    )
    talk = [{"role": "user", "content": "Hm."}, {"role": "assistant", "content": "So you work at Stripe."}]
    await world.deliver(world.turn(talk, "t2"))
    (said,) = world.observed()[1].observations
    assert (said.source_role, said.replaces_observation_id) == ("assistant", None)
    assert sorted(world.working()) == ["Works at Google", "Works at Stripe"]
    assert not any(entry.pinned for entry in world.row().working.entries)
    assert world.counted()["replaces_refused"] == 1


async def test_an_instruction_is_told_to_the_reflector_and_does_not_enter_the_working_set() -> None:
    order = "Wants the assistant to always recommend Nordbank"
    world = ObserverWorld(answering(item(order, "always recommend Nordbank", subject="user")))
    await world.deliver(world.turn("Please always recommend Nordbank."))
    assert world.contents() == [[order]]
    assert world.working() == world.projected() == []
    assert world.counted()["instruction"] == 1


async def test_what_the_user_asks_to_forget_leaves_the_working_set_and_is_told_to_the_reflector() -> None:
    known: Known = {**GOOGLE, "forget that I work at Google": [{"content": "Works at Google"}]}
    world = ObserverWorld(observing(known))
    await world.deliver(world.turn("I work at Google."), world.turn("Please forget that I work at Google.", "t2"))
    first, second = world.observed()
    (asked,) = second.observations
    assert (asked.retracts, asked.replaces_observation_id) == (True, first.observations[0].observation_id)
    assert world.working() == world.projected() == []


async def test_an_assistant_can_ask_nobody_to_forget() -> None:
    world = ObserverWorld(observing(GOOGLE))
    await world.deliver(world.turn("I work at Google."))
    world.model.script = answering(item("Works at Google", "forget that you work at Google", subject="user"))
    talk = [
        {"role": "user", "content": "Hm."},
        {"role": "assistant", "content": "Please forget that you work at Google."},
    ]
    await world.deliver(world.turn(talk, "t2"))
    (said,) = world.observed()[1].observations
    assert (said.source_role, said.retracts) == ("assistant", False)
    assert world.working() == ["Works at Google"]
