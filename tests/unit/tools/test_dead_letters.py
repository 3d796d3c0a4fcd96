"""Pages of dead letters: their order, their limits, and what a log that does not answer leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memstream.schemas import ids
from memstream.schemas.erasures import USER_PREFIX, ErasureMarker
from memstream.schemas.errors import Transient
from memstream.schemas.topics import COMMANDS, ERASURES, OBSERVATIONS, PARKED, TURNS
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.port import TopicSpec
from memstream.tools.dead_letters.letters import DeadLetter, LetterFilter
from memstream.tools.dead_letters.reader import STRETCH, DeadLetterReader, LetterBounds, LetterPage
from memstream.tools.dead_letters.redriver import LetterRedrives, SearchBounds
from tests.support.audit_lines import audit_lines
from tests.support.written_letters import AT, park, refused_turn

DLQ = TURNS.name + ".dlq"
TOPICS = (COMMANDS.name + ".dlq", DLQ)


def every(letter: DeadLetter) -> bool:
    return True


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[EmbeddedLog]:
    log = EmbeddedLog(folder=tmp_path)
    await log.start()
    names = (TURNS.name, DLQ, TOPICS[0], ERASURES.name, PARKED.name)
    await log.create([TopicSpec(name, 3, 1, {}) for name in names])
    yield log
    await log.close()


def turns(page: LetterPage) -> list[str | None]:
    return [each.turn_id for each in page.items]


async def pages(reader: DeadLetterReader, takes: Any = every, *, limit: int) -> list[LetterPage]:
    found = [await reader.page(TOPICS, takes, limit=limit)]
    while (cursor := found[-1].next) is not None:
        assert len(found) < 200, "the pages do not end"
        found.append(await reader.page(TOPICS, takes, limit=limit, cursor=cursor))
    return found


# ------------------------------------------------------------------------------------------------ pages
async def test_pages_have_every_letter_once_newest_first_over_all_partitions(log: EmbeddedLog) -> None:
    count = 3 * STRETCH + 1
    for number in range(count):
        await refused_turn(log, f"t{number}", user=f"u{number % 5}", at=AT + number)
    found = await pages(DeadLetterReader(log), limit=7)
    assert {len(page.items) for page in found[:-1]} == {7}
    assert [each for page in found for each in turns(page)] == [f"t{number}" for number in reversed(range(count))]
    chosen = LetterFilter(user="u3", reason="refused_by_model", stage="observer", tenant="acme").matches
    (mine,) = await pages(DeadLetterReader(log), chosen, limit=50)
    assert turns(mine) == [f"t{number}" for number in reversed(range(3, count, 5))]
    for other in ({"tenant": "rival"}, {"reason": "fatal"}, {"stage": "reflector"}, {"user": "u9"}):
        assert turns((await pages(DeadLetterReader(log), LetterFilter(**other).matches, limit=50))[0]) == []


async def test_a_page_reads_a_limited_number_of_letters_and_leads_on(log: EmbeddedLog) -> None:
    for number in range(4 * STRETCH):
        await refused_turn(log, f"t{number}", at=AT + number)
    reader = DeadLetterReader(log, LetterBounds(letters=STRETCH))
    found = await pages(reader, lambda letter: letter.turn_id == "t0", limit=5)
    assert [len(page.items) for page in found] == [0] * (len(found) - 1) + [1]
    assert len(found) > 1
    for wrong in ("x", found[0].next + ",", "a,b"):  # type: ignore[operator]
        with pytest.raises(ValueError, match="is not a"):
            await reader.page(TOPICS, every, limit=5, cursor=wrong)


async def test_letters_of_a_read_without_time_are_on_the_next_page(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await refused_turn(log)
    found = await DeadLetterReader(log, LetterBounds(seconds=0)).page(TOPICS, every, limit=5)
    assert (turns(found), found.next is not None) == ([], True)
    assert turns(await DeadLetterReader(log).page(TOPICS, every, limit=5, cursor=found.next)) == ["t1"]


async def test_a_topic_that_does_not_answer_is_named_and_the_others_are_shown(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await refused_turn(log)
    starts = log.starts

    async def denied(topic: str) -> Any:
        if topic == TOPICS[0]:
            raise Transient("broker", f"the broker denies access to the topic {topic}", remedy="topics acls")
        return await starts(topic)

    monkeypatch.setattr(log, "starts", denied)
    page = await DeadLetterReader(log).page(TOPICS, every, limit=5)
    assert turns(page) == ["t1"]
    assert [(each.part, each.why) for each in page.missing] == [
        (TOPICS[0], f"the broker denies access to the topic {TOPICS[0]} (topics acls)")
    ]


async def test_headers_of_the_refused_record_are_not_the_stages(log: EmbeddedLog) -> None:
    """A producer must not choose the tenant that sees its letter."""
    forged = (("kafka_dlt-original-topic", b"x"), ("memstream-tenant", b"rival"), ("memstream-reason", b"fatal"))
    await refused_turn(log, value=b"\xff not JSON", headers=forged)
    (letter,) = (await DeadLetterReader(log).page(TOPICS, every, limit=5)).items
    assert (letter.tenant_id, letter.reason, letter.original_topic) == (None, "refused_by_model", TURNS.name)
    assert letter.owners == ()
    await refused_turn(log, value=b'{"tenant_id": "acme", "user_id": 7, "owner": {"scope": "moon"}, "turn_id": "\\n"}')
    letter = (await DeadLetterReader(log).page(TOPICS, every, limit=5)).items[0]
    assert (letter.tenant_id, letter.owners, letter.turn_id) == ("acme", (), None)
    await log.append(DLQ, key=b"k", value=b"{}", headers=forged[1:])
    letter = (await DeadLetterReader(log).page(TOPICS, every, limit=5)).items[0]
    assert (letter.tenant_id, letter.not_redrivable) == (None, "its headers do not name its record")


async def test_letters_of_an_erased_user_are_left_out(log: EmbeddedLog) -> None:
    place = await refused_turn(log, user="gone")
    kept = await refused_turn(log, "t2", user="stays")
    at = datetime.fromtimestamp(AT / 1000, UTC) + timedelta(days=1)
    user = ids.user_hash("acme", "gone")
    marker = ErasureMarker(erasure_id="e", at=at, state="closed")
    await log.append(ERASURES.name, key=(USER_PREFIX + user).encode(), value=marker.to_bytes())
    reader = DeadLetterReader(log)
    assert turns(await reader.page(TOPICS, every, limit=5)) == ["t2"]
    assert await reader.letter(place.topic, place.partition, place.offset) is None
    assert await reader.letter(kept.topic, kept.partition, kept.offset) is not None
    assert await reader.letter(kept.topic, kept.partition, kept.offset + 1) is None
    assert await reader.letter(kept.topic, 99, 0) is None


# ------------------------------------------------------------------------------------------------ one redrive
async def put_back(log: EmbeddedLog) -> int:
    return len([each async for each in log.read(TURNS.name) if dict(each.headers).get("memstream-redriven")])


async def test_a_letter_is_put_back_once_and_the_list_says_so(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = await refused_turn(log)
    cut = await refused_turn(log, "t2", value=b"x" * (1024 * 1024 + 1))
    reader, redrives = DeadLetterReader(log), LetterRedrives(log)
    record, late = [
        each for each in [await reader.record(at.topic, at.partition, at.offset) for at in (place, cut)] if each
    ]
    states = {each.turn_id: each.put_back for each in (await reader.page(TOPICS, every, limit=5)).items}
    assert states == {"t1": False, None: None}
    with audit_lines() as trail:
        unsure = await LetterRedrives(log, SearchBounds(records=0)).put_back(record, who="eva")
        assert (unsure.action, "too many newer records" in unsure.why, await put_back(log)) == ("failed", True, 0)
        assert (await redrives.put_back(record, who="eva")).action == "put_back"
        assert (await redrives.put_back(record, who="eva")).action == "was_put_back"
        assert (await redrives.put_back(late, who="eva")).why == "its key or value was cut"
        monkeypatch.setattr(log, "read", lambda *args, **more: (_ for _ in ()).throw(Transient("broker", "away")))
        with pytest.raises(Transient):
            await redrives.put_back(record, who="eva")
        monkeypatch.undo()
    assert await put_back(log) == 1
    assert [each["result"] for each in trail] == ["refused", "written", "nothing", "refused", "failed"]
    assert {(each["action"], each["who"]) for each in trail} == {("dead-letters.redrive", "eva")}
    assert trail[1]["letter"] == f"{DLQ}/{place.partition}@{place.offset}"
    assert (trail[1]["tenant_id"], trail[1]["owner"]["id"], trail[1]["turn_id"]) == ("acme", "u1", "t1")
    assert (await reader.page(TOPICS, every, limit=5)).items[-1].put_back is True
    short = DeadLetterReader(log, LetterBounds(search=SearchBounds(records=0)))
    assert (await short.page(TOPICS, every, limit=5)).items[-1].put_back is None


# ------------------------------------------------------------------------------------------------ parked keys
async def test_parked_keys_have_pages(log: EmbeddedLog) -> None:
    for user in ("u1", "u2", "u3"):
        await park(log, user=user)
    reader = DeadLetterReader(log)
    first = await reader.parked(lambda entry: True, limit=2)
    second = await reader.parked(lambda entry: True, limit=2, cursor=first.next)
    found = [(each.tenant_id, each.owner.id) for each in (*first.items, *second.items)]
    assert found == [("acme", user) for user in ("u1", "u2", "u3")]
    assert second.next is None
    assert {each.topic for each in first.items} == {OBSERVATIONS.name}
    with pytest.raises(Transient, match="was not read within 0 s"):
        await DeadLetterReader(log, LetterBounds(seconds=0)).parked(lambda entry: True, limit=2)
