"""Dead letters and parked keys in the console and over HTTP: what they show, to whom, and what a redrive does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from memstream.api.credentials import Credentials
from memstream.schemas.errors import Transient
from memstream.schemas.topics import COMMANDS, OBSERVATIONS, PARKED, TURNS, catalogue
from tests.support.api_server import app_over, entry
from tests.support.audit_lines import audit_lines
from tests.support.console_pages import HOSTILE, called, page_of, shape, words
from tests.support.console_world import BOUND, READ_ONLY, ConsoleWorld, Run, console_world
from tests.support.written_letters import AT, park, refused_turn

DLQ = TURNS.name + ".dlq"
ADMIN = entry("all", tenants=("acme", "rival"), scopes=("memory:read", "memory:read-secret", "memory:admin"))
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


@pytest.fixture(scope="module")
def world(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleWorld]:
    folder = tmp_path_factory.mktemp("letters")
    opened = console_world(folder, Credentials((ADMIN, READ_ONLY, BOUND)), topics=catalogue())
    yield run(opened.__aenter__())
    run(opened.__aexit__(None, None, None))


async def read(world: ConsoleWorld, page: str = "console/dead-letters", token: str = "all", **query: Any) -> Any:
    async with called(world.app, token=token) as client:
        return await client.get(f"/{page}?{urlencode({'tenant_id': 'acme'} | query)}")


async def visit(world: ConsoleWorld, link: str) -> Any:
    async with called(world.app, token="all") as client:
        return await client.get(link)


async def press(world: ConsoleWorld, page: str, token: str = "all", **changed: str) -> Any:
    """Press the first button of a page that puts a letter back, with its form as it is except `changed`. `token`: who
    sends the form, with a form token of its own."""
    async with called(world.app, token="all") as client:
        form = page_of(await client.get(page)).css_first("main form[method=post]")
    async with called(world.app, token=token) as client:
        if token != "all":
            changed["csrf"] = str(
                page_of(await client.get("/console")).css_first("input[name=csrf]").attributes["value"]
            )
        fields = {str(each.attributes["name"]): each.attributes.get("value") or "" for each in form.css("input")}
        return await client.post(str(form.attributes["action"]), data=fields | changed)


def put_back(run: Run, world: ConsoleWorld, user: str) -> int:
    async def count() -> int:
        records = [each async for each in world.past.log.read(TURNS.name)]
        return sum("memstream-redriven" in dict(each.headers) and user in str(each.value) for each in records)

    return int(run(count()))


# ------------------------------------------------------------------------------------------------ what they show
def test_the_list_shows_each_letter_and_leads_to_its_turn(run: Run, world: ConsoleWorld) -> None:
    log = world.past.log
    for number in range(3):
        run(refused_turn(log, f"t {number}", user="shown", message=f"reason {number}", at=AT + number))
    run(refused_turn(log, "t9", user="shown", stage="recorder", reason="fatal", message="not this one"))
    run(park(log, user="shown"))
    page = page_of(run(read(world, user_id="shown", stage="observer", reason="refused_by_model", limit=2)))
    assert [each.text() for each in page.css("#letters .statement")] == ["reason 2", "reason 1"]
    assert page.css_first("nav a[aria-current]").text() == "Dead letters"
    row = page.css_first("#letters li")
    assert all(
        part in " ".join(row.text(separator=" ").split())
        for part in ("refused_by_model", "observer", "user shown", "3 attempts", f"{DLQ}/0@")
    )
    links = [str(each.attributes["href"]) for each in row.css("a")]
    assert links[0].startswith("/console/trail?tenant_id=acme&user_id=shown")
    assert links[1].startswith("/console/turns/t%202?tenant_id=acme&user_id=shown&session_id=s1")
    rest = page_of(run(visit(world, str(page.css_first("p a.button").attributes["href"]))))
    assert [each.text() for each in rest.css("#letters .statement")] == ["reason 0"]
    assert rest.css_first("#parked") is None
    parked = page_of(run(read(world, user_id="shown")))
    assert "the store refuses it" in words(parked, "#parked")
    assert "reason=parked" in str(parked.css_first("#parked a").attributes["href"])
    one = page_of(run(visit(world, links[2])))
    assert "reason 2" in words(one, "h1")
    assert "I work at Stripe" not in words(one)


def test_an_empty_list_and_a_log_without_right_say_so(
    run: Run, world: ConsoleWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no such dead letter" in words(page_of(run(read(world, user_id="nobody"))), ".empty")
    run(refused_turn(world.past.log, user="denied"))
    partitions = type(world.past.log).partitions

    async def denied(self: Any, topic: str) -> Any:
        if topic in (OBSERVATIONS.name + ".dlq", PARKED.name):
            raise Transient("broker", f"the broker denies access to the topic {topic}", remedy="see topics acls")
        return await partitions(self, topic)

    monkeypatch.setattr(type(world.past.log), "partitions", denied)
    page = page_of(run(read(world, user_id="denied")))
    assert "no usable answer" in words(page, "#letters")
    notices = [" ".join(each.text(separator=" ").split()) for each in page.css(".notice")]
    for topic in (OBSERVATIONS.name + ".dlq", PARKED.name):
        assert any(f"denies access to the topic {topic} (see topics acls)" in each for each in notices), notices
    answer = run(read(world, "v1/dead-letters", user_id="denied")).json()
    assert [each["part"] for each in answer["missing"]] == [OBSERVATIONS.name + ".dlq"]
    assert run(read(world, "v1/parked-keys")).status_code == 503


def test_wrong_queries_are_refused(run: Run, world: ConsoleWorld) -> None:
    for page in ("v1/dead-letters", "console/dead-letters"):
        for wrong in ({"stage": "cook"}, {"reason": "tired"}, {"limit": 0}, {"cursor": "x"}, {"topic": "memory.facts"}):
            assert run(read(world, page, **wrong)).status_code == 422, (page, wrong)
        assert run(read(world, page, topic=COMMANDS.name)).status_code == 200
    for place in ("memory.turns/0/99999", "memory.turns/99/0", "memory.facts/0/0"):
        assert run(read(world, f"v1/dead-letters/{place}")).status_code == 404


# ------------------------------------------------------------------------------------------------ rights
def test_nobody_is_told_of_letters_of_others(run: Run, world: ConsoleWorld) -> None:
    log = world.past.log
    for tenant in ("acme", "rival"):
        for user in ("u1", "u2"):
            run(refused_turn(log, user=user, tenant=tenant, message=f"{tenant} {user}"))
            run(park(log, user=user, tenant=tenant, error=f"{tenant} {user} parked"))
    unread = run(refused_turn(log, user="u2", value=b"\xff", message="unreadable"))
    theirs = run(refused_turn(log, user="u1", tenant="rival"))
    other = run(refused_turn(log, user="u1"))
    for page in ("console/dead-letters", "v1/dead-letters", "v1/parked-keys"):
        mine = run(read(world, page)).text
        assert "acme u1" in mine
        assert "rival" not in mine
        assert "unreadable" not in mine
        assert "rival u1" in run(read(world, page, tenant_id="rival")).text
        bound = run(read(world, page, "bound")).text
        assert "acme u2" in bound
        assert "acme u1" not in bound
        assert run(read(world, page, "bound", user_id="u1")).status_code == 403
        assert run(read(world, page, "reader", tenant_id="rival")).status_code == 403
    for place, token in ((unread, "reader"), (theirs, "reader"), (unread, "bound"), (other, "bound")):
        path = f"dead-letters/{place.topic}/{place.partition}/{place.offset}"
        for page in ("v1", "console"):
            assert run(read(world, f"{page}/{path}", token)).status_code == 404

    async def without_tokens() -> tuple[str, str]:
        async with called(app_over(log=log, store=world.past.store)) as client:
            return (await client.get("/v1/dead-letters")).text, (await client.get("/console/dead-letters")).text

    for text in run(without_tokens()):
        assert all(each in text for each in ("unreadable", "acme u1", "rival u1"))


def test_content_needs_the_right_to_secrets_and_is_masked(run: Run, world: ConsoleWorld) -> None:
    place = run(refused_turn(world.past.log, user="hidden", text=f"my key is {SECRET}, and I am ill"))
    path = f"dead-letters/memory.turns/{place.partition}/{place.offset}"
    for page in ("v1", "console"):
        assert "I am ill" not in run(read(world, f"{page}/{path}")).text
        assert run(read(world, f"{page}/{path}", "reader", ceiling="secret")).status_code == 403
        with audit_lines() as lines:
            text = run(read(world, f"{page}/{path}", ceiling="secret")).text
        assert "I am ill" in text
        assert SECRET not in text
        (noted,) = lines
        assert (noted["result"], noted["ceiling"], noted["owner"]["id"]) == ("allowed", "secret", "hidden")


# ------------------------------------------------------------------------------------------------ redrive
def test_a_letter_is_put_back_once_by_the_form_and_over_http(run: Run, world: ConsoleWorld) -> None:
    place = run(refused_turn(world.past.log, user="again"))
    page = "/console/dead-letters?tenant_id=acme&user_id=again"

    async def over_http(token: str, **body: str) -> Any:
        async with called(world.app, token=token) as client:
            path = f"/v1/dead-letters/{DLQ}/{place.partition}/{place.offset}/redrive"
            return await client.post(path, json={"tenant_id": "acme"} | body)

    assert run(press(world, page, csrf="0" * 64)).status_code == 403
    assert run(press(world, page, "reader")).status_code == 403
    assert page_of(run(read(world, user_id="again", token="reader"))).css("main form[method=post]") == []
    assert run(over_http("reader")).status_code == 403
    assert run(over_http("all", tenant_id="rival")).status_code == 404
    assert put_back(run, world, "again") == 0
    one = f"/console/dead-letters/{DLQ}/{place.partition}/{place.offset}?tenant_id=acme"
    for form, said in ((page, "Put back: the record is in its topic"), (one, "was put back before")):
        answer = run(press(world, form))
        assert answer.status_code == 303, answer.text
        assert said in words(page_of(run(visit(world, answer.headers["location"]))), ".notice")
    again = run(over_http("all"))
    assert (again.status_code, again.json()["action"], again.json()["masked"]) == (200, "was_put_back", False)
    assert put_back(run, world, "again") == 1
    shown = page_of(run(read(world, user_id="again")))
    assert "put back" in words(shown, "#letters .tag")
    assert shown.css("#letters form") == []
    lost = run(refused_turn(world.past.log, user="u", value=b"x" * (1024 * 1024 + 1)))

    async def without_tokens() -> Any:
        async with called(app_over(log=world.past.log, store=world.past.store)) as client:
            path = f"/v1/dead-letters/memory.turns/{lost.partition}/{lost.offset}/redrive"
            return await client.post(path, json={})

    refused = run(without_tokens())
    assert (refused.status_code, "was cut" in refused.json()["detail"]) == (409, True)


# ------------------------------------------------------------------------------------------------ hostile text
async def pages_with(world: ConsoleWorld, text: str, user: str) -> list[Any]:
    """Write a letter and a parked key with a text in each field that can have it, and read every page."""
    log = world.past.log
    turn = "".join(each for each in text if each.isprintable())[:60]
    named = {"tenant_id": "acme", "user_id": user, "session_id": turn, "turn_id": turn, "content": text}
    place = await refused_turn(
        log, user=user, value=json.dumps(named).encode(), message=text, headers=((text[:60], text.encode()),)
    )
    await park(log, user=user, error=text)
    path = f"console/dead-letters/{DLQ}/{place.partition}/{place.offset}"
    return [page_of(await read(world, user_id=user)), page_of(await read(world, path, ceiling="secret"))]


@pytest.mark.parametrize("text", HOSTILE)
def test_stored_text_never_becomes_markup(run: Run, world: ConsoleWorld, text: str) -> None:
    harmless = [shape(page) for page in run(pages_with(world, "plain words", f"plain {HOSTILE.index(text)}"))]
    pages = run(pages_with(world, text, f"hostile {HOSTILE.index(text)}"))
    assert [shape(page) for page in pages] == harmless
    for page in pages:
        visible = page.css_first("main").text()
        assert not set("\u202e\u200b\u2066") & set(visible)
        assert text.partition("\u202e")[0].strip()[:60] in visible
