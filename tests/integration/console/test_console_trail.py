"""The console's screen Trail over a real store and log: the stages of turns, the outcomes of statements, to whom."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from memstream.recall import turn_search
from memstream.schemas import ids
from memstream.schemas.errors import Poison, Transient
from memstream.schemas.observations import ObservedBy, RefusedStatement, RefusedStatements
from memstream.schemas.topics import OBSERVATIONS, TURNS, dead_letters_of, group_of
from memstream.schemas.turns import Owner
from memstream.streams.engine.dead_letters import dead_letter
from memstream.streams.log.port import Record
from tests.support.console_pages import HOSTILE, called, page_of, shape, words
from tests.support.console_world import ConsoleWorld, Run
from tests.support.record_builders import observed
from tests.support.stored_memory import NOW


async def read(world: ConsoleWorld, page: str, token: str = "all", **query: Any) -> Any:
    async with called(world.app, token=token) as client:
        return await client.get(f"/console/{page}?{urlencode({'tenant_id': 'acme'} | query)}")


async def sent(world: ConsoleWorld, turn: str, user: str) -> Record:
    """Send a turn, as the chat service does."""
    key = ids.session_key("acme", user, "s1").encode()
    value = json.dumps({"tenant_id": "acme", "turn_id": turn}).encode()
    place = await world.past.log.append(TURNS.name, key=key, value=value)
    return Record(place, key, value)


def stages(page: Any) -> dict[str, str]:
    return {node.css_first("h2 a").text(): node.css_first("h2 .state").text() for node in page.css("article.turn")}


# ------------------------------------------------------------------------------------------------ the screen
def test_each_turn_has_its_stage_newest_first(run: Run, world: ConsoleWorld) -> None:
    async def turns() -> None:
        minutes = iter(range(1, 10))

        async def recorded(turn: str) -> None:
            at = NOW + timedelta(minutes=next(minutes))
            await world.memory.message(f"I say {turn}", user="u1", turn=turn, occurred_at=at)

        await world.learnt("Works at Stripe", turn="reflected", user="u1")
        log = world.past.log
        await log.commit(group_of("reflector"), OBSERVATIONS.name, {0: (await log.ends(OBSERVATIONS.name))[0]})
        await world.learnt("Lives in Rome", turn="observed", user="u1")
        for turn in ("waiting", "refused", "unread", "old"):
            await recorded(turn)
        waiting = await sent(world, "waiting", "u1")
        refused = await sent(world, "refused", "u1")
        letter = dead_letter(refused, stage="observer", reason="refused_by_model", error=Poison("x", "no"), attempts=1)
        await log.append(dead_letters_of(TURNS).name, key=letter.key, value=letter.value, headers=letter.headers)
        await sent(world, "unread", "u1")
        await log.commit(group_of("observer"), TURNS.name, {0: waiting.position.offset + 1})

    run(turns())
    page = page_of(run(read(world, "trail", user_id="u1")))
    assert stages(page) == {
        "old": "unknown", "unread": "unread", "refused": "refused", "waiting": "waiting", "observed": "observed",
        "reflected": "reflected",
    }  # fmt: skip
    assert [*stages(page)][:4] == ["old", "unread", "refused", "waiting"], "newest first"
    notices = words(page, "article:nth-of-type(3) .notice")
    assert "it is a dead letter, refused_by_model: no" in notices
    assert "observer 2 (no worker)" in words(page, "#lag")
    one = page.css("article.turn h2 a")[2].attributes["href"]

    async def follow(path: str) -> Any:
        async with called(world.app, token="all") as client:
            return await client.get(path)

    assert stages(page_of(run(follow(one)))) == {"refused": "refused"}


def test_a_statement_shows_its_outcome_and_leads_to_its_fact(run: Run, world: ConsoleWorld) -> None:
    weak = RefusedStatement(subject="user", content="Likes tea", why="weak_evidence")
    fact = run(
        world.learnt("Works at Visa", turn="both", user="outcomes",
                     record={"cause": ObservedBy(model="m", refused=RefusedStatements(statements=3, listed=(weak,)))})
    )  # fmt: skip
    log = world.past.log
    run(log.commit(group_of("reflector"), OBSERVATIONS.name, {0: run(log.ends(OBSERVATIONS.name))[0]}))
    page = page_of(run(read(world, "trail", user_id="outcomes")))
    learnt, refused = page.css("ul.observed > li")
    assert learnt.css_first(".state").text() == "learnt"
    assert fact.fact_id in str(learnt.css_first("a").attributes["href"])
    assert learnt.css_first("a").text() == "Works at Visa"
    assert "its quote does not support it" in refused.text()
    assert "2 more refused statements are not listed" in words(page)


@pytest.mark.parametrize(
    ("user", "model", "said", "why"),
    [
        ("wishes", "offline-rules/1", ["I wish I lived in Paris."], "the message is a question, a request or a wish"),
        ("asks", "offline-rules/1", ["Where do I live?"], "the message is a question, a request or a wish"),
        ("reports", "offline-rules/1", ['My friend said "I work at Apple".'], "the message has another person's words"),
        ("plans", "offline-rules/1", ["I might move to Rome."], "the message is a plan or a guess"),
        ("plays", "offline-rules/1", ["Let's play a game: you are the dragon, I am a knight.", "I live in a castle."],
         "the message is a part of a game or a story"),
        ("odd", "offline-rules/1", ["Bananas."], "the rules of the offline model do not understand the message"),
        ("large", "gpt", ["I live in Rome."], "the model found nothing in it that lasts"),
        ("never", None, ["..."], "no model was asked about it"),
    ],
)  # fmt: skip
def test_a_turn_without_a_statement_says_why(
    run: Run, world: ConsoleWorld, user: str, model: str | None, said: list[str], why: str
) -> None:
    for minute, text in enumerate(said):
        at = NOW + timedelta(minutes=minute)
        run(world.memory.message(text, user=user, turn=f"t{minute}", occurred_at=at))
    owner = Owner(scope="user", id=user)
    value = observed(turn=f"t{len(said) - 1}", owner=owner, user_id=user, cause=ObservedBy(model=model)).to_bytes()
    run(world.past.log.append(OBSERVATIONS.name, key=owner.key("acme").encode(), value=value))
    for page in ("trail", f"turns/t{len(said) - 1}"):
        shown = page_of(run(read(world, page, user_id=user, session_id="s1")))
        assert words(shown, ".nothing").startswith(f"Nothing was learnt: {why}"), page


def test_a_message_with_a_masked_secret_says_so(run: Run, world: ConsoleWorld) -> None:
    for turn, text in (("masked", "My password is [password]."), ("plain", "My list is [1, 2].")):
        run(world.memory.message(text, user="secrets", turn=turn))
    page = page_of(run(read(world, "trail", user_id="secrets")))
    told = {
        node.css_first("h2 a").text(): "Memory replaced a secret" in node.text() for node in page.css("article.turn")
    }
    assert told == {"masked": True, "plain": False}


def test_pages_follow_each_other(run: Run, world: ConsoleWorld) -> None:
    for number in range(3):
        at = NOW + timedelta(minutes=number)
        run(world.memory.message(f"turn {number}", user="paged", turn=f"t{number}", occurred_at=at))
    first = page_of(run(read(world, "trail", user_id="paged", limit=2)))
    more = str(first.css_first("a.button").attributes["href"])

    async def follow() -> Any:
        async with called(world.app, token="all") as client:
            return await client.get(more)

    second = page_of(run(follow()))
    assert [*stages(first), *stages(second)] == ["t2", "t1", "t0"]
    assert second.css_first("a.button") is None


def test_a_session_is_a_filter(run: Run, world: ConsoleWorld) -> None:
    for session in ("s1", "s/2"):
        run(world.memory.message("hello", user="sessions", session=session, turn=f"of {session}"))
    page = page_of(run(read(world, "trail", user_id="sessions", session_id="s/2")))
    assert [*stages(page)] == ["of s/2"]


def test_the_trail_is_searched_by_words_days_and_stage(run: Run, world: ConsoleWorld) -> None:
    async def said(text: str, day: int, **more: Any) -> None:
        await world.memory.message(text, user="search", turn=f"d{day}", occurred_at=NOW + timedelta(days=day), **more)

    for day, text in enumerate(("I like TEA", "the weather", "Straße und tea", "bye")):
        run(said(text, day))
    run(said("the answer says coffee", 1, message_index=1, role="assistant"))
    run(
        world.learnt(
            "Works at Stripe", user="search", turn="observed", message={"occurred_at": NOW - timedelta(days=9)}
        )
    )
    for query, turns in (
        ({"words": "tea"}, ["d2", "d0"]),
        ({"words": "COFFEE weather"}, ["d1"]),
        ({"words": "strasse TEA"}, ["d2"]),
        ({"words": "tea", "limit": 1}, ["d2"]),
        ({"since": "2026-11-21", "until": "2026-11-22"}, ["d2", "d1"]),
        ({"until": "2026-11-20"}, ["d0", "observed"]),
        ({"until": "9999-12-31", "words": "bye"}, ["d3"]),
        ({"stage": "observed"}, ["observed"]),
        ({"words": "nothing like this"}, []),
    ):
        assert [*stages(page_of(run(read(world, "trail", user_id="search", **query))))] == turns, query
    for wrong in (
        {"since": "yesterday"},
        {"until": "0"},
        {"since": "2026-02-30"},
        {"stage": "done"},
        {"words": "x" * 501},
    ):
        assert run(read(world, "trail", user_id="search", **wrong)).status_code == 422, wrong
    none = page_of(run(read(world, "trail", user_id="search", words="nothing")))
    assert "No recorded turn matches" in words(none, ".empty")


def test_a_search_reads_a_limited_number_of_turns(
    run: Run, world: ConsoleWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page without a match leads to the next one, with the same search."""
    monkeypatch.setattr(turn_search, "READ_MAX", 2 * turn_search.TURNS_MAX)
    for number in range(5):
        at = NOW - timedelta(minutes=number)
        run(world.memory.message(f"word{number}", user="many", turn=f"t{number}", occurred_at=at))
    first = page_of(run(read(world, "trail", user_id="many", words="word4", limit=2)))
    assert "Older turns follow" in words(first, ".empty")
    more = str(first.css_first("a.button").attributes["href"])

    async def follow() -> Any:
        async with called(world.app, token="all") as client:
            return await client.get(more)

    assert [*stages(page_of(run(follow())))] == ["t4"]


def test_an_empty_trail_says_what_to_do(run: Run, world: ConsoleWorld) -> None:
    page = page_of(run(read(world, "trail", user_id="nobody", session_id="s1")))
    assert "memstream dlq list" in words(page, ".empty")
    assert run(read(world, "turns/unknown", user_id="nobody")).status_code == 404
    assert run(read(world, "turns/" + "x" * 129, user_id="nobody")).status_code == 422
    assert "user" in words(page_of(run(read(world, "trail"))))


def test_a_log_that_is_away_leaves_the_words(run: Run, world: ConsoleWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    run(world.memory.message("still readable", user="away", turn="t1"))

    async def away(*args: Any) -> Any:
        raise Transient("broker", "the log does not answer")

    monkeypatch.setattr(type(world.past.log), "partitions", away)
    answer = run(read(world, "trail", user_id="away"))
    assert answer.status_code == 200
    page = page_of(answer)
    assert "still readable" in words(page)
    assert "This page is incomplete" in words(page, ".notice")
    assert "because the log does not answer" in words(page, "#lag")


def test_offsets_that_are_away_leave_the_rest(run: Run, world: ConsoleWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Kafka may refuse the offsets of a group and answer everything else."""
    run(world.learnt("Lives in Rome", turn="t1", user="offsets"))
    run(world.memory.message("then this", user="offsets", turn="t2"))
    run(sent(world, "t2", "offsets"))

    async def refused(*args: Any) -> Any:
        raise Transient("broker", "the broker denies DESCRIBE on the group memory-observer")

    monkeypatch.setattr(type(world.past.log), "committed", refused)
    page = page_of(run(read(world, "trail", user_id="offsets")))
    assert stages(page) == {"t1": "observed", "t2": "unknown"}
    assert "denies DESCRIBE on the group memory-observer" in words(page, ".notice")
    assert "the log does not say whether the observer has read it" in words(page)


# ------------------------------------------------------------------------------------------------ rights
def test_what_a_caller_may_not_see_is_not_in_the_page(run: Run, world: ConsoleWorld) -> None:
    run(world.learnt("Has a hidden illness", user="rights", turn="t1", sensitivity="secret",
                     seen={"sensitivity": "secret"}, message={"sensitivity": "secret"}))  # fmt: skip
    run(world.memory.message("an open word", user="rights", turn="t2"))
    for page in ("trail", "turns/t1"):
        answer = run(read(world, page, user_id="rights"))
        assert "illness" not in answer.text
        assert run(read(world, page, "reader", user_id="rights", ceiling="secret")).status_code == 403
        assert run(read(world, page, "bound", user_id="rights")).status_code == 403
        assert run(read(world, page, "reader", user_id="rights", tenant_id="rival")).status_code == 403
        secret = run(read(world, page, user_id="rights", ceiling="secret"))
        assert "Has a hidden illness" in words(page_of(secret))
    rival = run(read(world, "trail", user_id="rights", tenant_id="rival"))
    assert page_of(rival).css("article.turn") == []


# ------------------------------------------------------------------------------------------------ hostile text
async def pages_with(world: ConsoleWorld, value: str, user: str) -> list[Any]:
    short = value[:60]
    weak = RefusedStatement(subject=short, content=value, why=short)
    await world.learnt(
        value, user=user, turn=f"t {short}", said=value, quote=value, message={"name": short},
        seen={"subject": short},
        record={"cause": ObservedBy(model=short, prompt=short,
                                    refused=RefusedStatements(statements=1, listed=(weak,)))},
    )  # fmt: skip
    return [
        page_of(await read(world, "trail", user_id=user)),
        page_of(await read(world, f"turns/{quote(f't {short}', safe='')}", user_id=user)),
    ]


@pytest.fixture(scope="module")
def harmless(run: Run, world: ConsoleWorld) -> Any:
    return [shape(page) for page in run(pages_with(world, "plain words", "harmless"))]


@pytest.mark.parametrize("text", HOSTILE)
def test_stored_text_never_becomes_markup(run: Run, world: ConsoleWorld, harmless: Any, text: str) -> None:
    pages = run(pages_with(world, text, f"hostile {HOSTILE.index(text)}"))
    assert [shape(page) for page in pages] == harmless
    for page in pages:
        visible = page.css_first("main").text()
        assert not set("\u202e\u200b\u2066") & set(visible), "an invisible character reaches the browser"
        assert text.partition("\u202e")[0].strip() in visible
