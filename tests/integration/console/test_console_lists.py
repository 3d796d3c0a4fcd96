"""The console's lists of tasks, blocks and groups, and the review: what they show, to whom, and their forms."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlencode

import click
import pytest

from memstream.cli.main import cli
from memstream.schemas.turns import Owner
from tests.support.console_pages import HOSTILE, called, page_of, shape, words
from tests.support.console_world import ConsoleWorld, Run
from tests.support.written_letters import refused_turn

LISTS = ("tasks", "blocks", "groups")


async def read(world: ConsoleWorld, page: str, token: str = "all", **query: Any) -> Any:
    async with called(world.app, token=token) as client:
        return await client.get(f"/console/{page}?{urlencode({'tenant_id': 'acme'} | query)}")


async def send(world: ConsoleWorld, page: str, button: str, token: str = "all", **query: Any) -> Any:
    """Press a button of a page with its form as it is, like a browser. Return the answer and the page after it."""
    async with called(world.app, token=token) as client:
        shown = page_of(await client.get(f"/console/{page}?{urlencode({'tenant_id': 'acme'} | query)}"))
        pressed = next(each for each in shown.css("main button") if each.text() == button)
        form = pressed.parent
        while form.tag != "form":
            form = form.parent
        given = {
            str(field.attributes["name"]): field.attributes.get("value")
            or (field.text() if field.tag == "textarea" else "")
            for field in form.css("input, textarea")
        }
        path = pressed.attributes.get("formaction") or form.attributes["action"]
        answer = await client.post(str(path), data=given)
        assert answer.status_code == 303, words(page_of(answer))
        return page_of(await client.get(answer.headers["location"]))


async def records(world: ConsoleWorld, text: str, user: str, tenant: str = "acme") -> None:
    """Write a task, a block and a group with a text in each field that can have it."""
    owner = Owner(scope="user", id=user)
    short = text[:60]
    await world.memory.task(text, tenant=tenant, owner=owner, subject=short, condition=text, reason=short)
    await world.memory.block(short.strip(), tenant=tenant, owner=owner, value=text, description=text)
    await world.memory.group(f"{user} {short}", tenant=tenant, members=(owner,), description=text, reason=short)


# ------------------------------------------------------------------------------------------------ the lists
def test_lists_show_the_records_of_an_owner(run: Run, world: ConsoleWorld) -> None:
    run(records(world, "Call Ana", "shown"))
    run(world.memory.task("Water the plants", owner=Owner(scope="user", id="shown"), state="done"))
    for page in LISTS:
        shown = page_of(run(read(world, page, user_id="shown")))
        assert "Call Ana" in words(shown, ".records .statement"), page
        assert shown.css_first("nav a[aria-current]").text().lower() == page
    assert "Water the plants" not in words(page_of(run(read(world, "tasks", user_id="shown"))))
    assert "Water the plants" in words(page_of(run(read(world, "tasks", user_id="shown", state="done"))))


def test_empty_lists_say_what_to_do(run: Run, world: ConsoleWorld) -> None:
    for page, command in (("tasks", "task add"), ("blocks", "block define"), ("groups", "group define")):
        assert f"memstream {command}" in words(page_of(run(read(world, page, user_id="nobody"))), ".empty")


def test_long_lists_have_pages(run: Run, world: ConsoleWorld) -> None:
    for number in range(3):
        run(world.memory.task(f"Task {number}", owner=Owner(scope="user", id="pages")))
    first = page_of(run(read(world, "tasks", user_id="pages", limit=2)))
    more = str(first.css_first("a.button").attributes["href"]).removeprefix("/console/")
    page, _, query = more.partition("?")

    async def follow() -> Any:
        async with called(world.app, token="all") as client:
            return await client.get(f"/console/{page}?{query}")

    second = page_of(run(follow()))
    found = [each.text() for shown in (first, second) for each in shown.css(".records .statement")]
    assert sorted(found) == ["Task 0", "Task 1", "Task 2"]


# ------------------------------------------------------------------------------------------------ rights
def test_what_a_caller_may_not_see_is_not_in_the_lists(run: Run, world: ConsoleWorld) -> None:
    run(records(world, "Only for acme", "u1"))
    run(records(world, "Only for rival", "u1", tenant="rival"))
    secret = {"owner": Owner(scope="user", id="u1"), "sensitivity": "secret"}
    run(world.memory.task("A covert task", **secret))
    run(world.memory.block("A covert block", **secret))
    both = (Owner(scope="user", id="u1"), Owner(scope="user", id="u2"))
    run(world.memory.group("of both", members=both))
    for page in LISTS:
        assert run(read(world, page, "reader", tenant_id="rival")).status_code == 403
        assert run(read(world, page, "bound", user_id="u1")).status_code == 403
        assert run(read(world, page, "reader", ceiling="secret")).status_code == 403
        mine = run(read(world, page, user_id="u1")).text
        assert "Only for acme" in mine
        assert "Only for rival" not in mine
        assert "covert" not in mine
        assert "Only for acme" not in run(read(world, page, "bound")).text
    groups = page_of(run(read(world, "groups", "bound")))
    assert [each.text().strip() for each in groups.css(".records .tag")] == ["user u2"]
    assert "A covert task" in run(read(world, "tasks", user_id="u1", ceiling="secret")).text


@pytest.mark.parametrize("page", LISTS)
def test_forms_are_offered_to_who_may_write(run: Run, world: ConsoleWorld, page: str) -> None:
    run(records(world, "To write", "writes"))
    assert page_of(run(read(world, page, user_id="writes"))).css("main form[method=post]")
    assert not page_of(run(read(world, page, "reader", user_id="writes"))).css("main form[method=post]")


# ------------------------------------------------------------------------------------------------ forms
@pytest.mark.parametrize(
    ("page", "button", "kind", "args"),
    [
        ("tasks", "Done", "tasks.done", {"task_id"}),
        ("tasks", "Cancel the task", "tasks.cancel", {"task_id"}),
        ("blocks", "Save the text", "blocks.rethink", {"name", "value"}),
        ("blocks", "Remove the block", "blocks.remove", {"name"}),
        ("groups", "Remove everything", "groups.remove", set()),
    ],
)
def test_a_form_sends_the_edit_of_the_rest_api(
    run: Run, world: ConsoleWorld, page: str, button: str, kind: str, args: set[str]
) -> None:
    run(records(world, "Feed the cat", "forms"))
    before = len(world.commands.asked)
    after = run(send(world, page, button, user_id="forms"))
    ((command, _),) = world.commands.asked[before:]
    assert (command.kind, command.tenant_id, command.issued_by) == (kind, "acme", "all")
    owner = Owner(scope="group", id="forms Feed the cat") if page == "groups" else Owner(scope="user", id="forms")
    assert command.owner == owner
    assert {name for name, value in command.args.items() if value not in ("", None, [])} - {"trust"} == args
    assert command.args.get("value", "Feed the cat") == "Feed the cat"
    assert "waits in the log" in words(after, ".notice")
    assert after.css_first("#user_id").attributes["value"] == "forms", "the form leads back to its list"


def test_a_review_decides_in_the_list(run: Run, world: ConsoleWorld) -> None:
    for state in ("quarantined", "pending"):
        fact = run(world.learnt(f"Is {state}", turn=state, user="review", state=state))
        for button, kind in (("Approve", "facts.approve"), ("Reject", "facts.reject")):
            before = len(world.commands.asked)
            after = run(send(world, "facts", button, user_id="review", state=state))
            ((command, _),) = world.commands.asked[before:]
            assert (command.kind, command.args["fact_id"]) == (kind, fact.fact_id)
            assert "waits in the log" in words(after, ".notice")
            assert after.css_first("nav a[aria-current]").text() == "Review"
    readers = page_of(run(read(world, "facts", "reader", user_id="review", state="pending")))
    assert readers.css("main form[method=post]") == []
    assert "memory:review" in words(readers, ".hint")
    assert page_of(run(read(world, "facts", user_id="review"))).css("main form[method=post]") == []


def test_a_form_without_right_or_token_changes_nothing(run: Run, world: ConsoleWorld) -> None:
    run(records(world, "Stays", "stays"))

    async def post(path: str, token: str = "all", **fields: str) -> int:
        async with called(world.app, token=token) as client:
            csrf = page_of(await client.get("/console")).css_first("input[name=csrf]").attributes["value"] or ""
            given = {"csrf": csrf, "tenant_id": "acme", "scope": "user", "id": "stays", "name": "Stays"} | fields
            return (await client.post(f"/console/{path}", data=given)).status_code

    before = len(world.commands.asked)
    assert run(post("blocks/remove", "reader")) == 403
    assert run(post("blocks/remove", "bound")) == 403
    assert run(post("blocks/remove", csrf="0" * 64)) == 403
    assert run(post("blocks/remove", tenant_id="unknown")) == 403
    assert run(post("groups/remove", "bound", group_id="g")) in (403, 422)
    assert run(post("blocks/define")) == 404
    assert run(post("tasks/remember")) == 404
    assert run(post("sessions/remove")) == 422
    assert run(post("blocks/remove", value="x")) == 422
    assert len(world.commands.asked) == before


def test_a_form_leads_only_to_a_page_of_the_console(run: Run, world: ConsoleWorld) -> None:
    async def post(back: str) -> str:
        async with called(world.app, token="all") as client:
            csrf = page_of(await client.get("/console")).css_first("input[name=csrf]").attributes["value"] or ""
            given = {"csrf": csrf, "tenant_id": "acme", "scope": "user", "id": "u1", "name": "x", "back": back}
            return str((await client.post("/console/blocks/remove", data=given)).headers["location"])

    assert run(post("https://evil.example")) == "/console?notice=accepted"
    assert run(post("/console/blocks?user_id=a%26b")) == "/console/blocks?user_id=a%26b&notice=accepted"


# ------------------------------------------------------------------------------------------------ as commands
@pytest.mark.parametrize(
    ("page", "query", "has"),
    [
        ("facts", {"user_id": "copied"}, "Likes 'green' tea"),
        ("facts/FACT", {}, "Likes 'green' tea"),
        ("trail", {"user_id": "copied"}, None),
        ("turns/a%20turn%2F1", {"user_id": "copied", "session_id": "s1"}, "Likes 'green' tea"),
        ("lab", {"user_id": "copied", "cue": "$(tea) 'x'"}, "items"),
        ("tasks", {"user_id": "copied"}, "Call Ana"),
        ("blocks", {"user_id": "copied"}, "Call Ana"),
        ("groups", {}, "Call Ana"),
        ("dead-letters", {"user_id": "copied", "stage": "observer", "reason": "fatal"}, "a turn/1"),
        ("dead-letters/memory.turns/0/0", {}, "a turn/1"),
    ],
)
def test_a_page_is_shown_as_commands(
    run: Run, world: ConsoleWorld, page: str, query: dict[str, str], has: str | None
) -> None:
    """The request returns what the page shows, the command has known options, and neither has the token."""
    fact = run(world.learnt("Likes 'green' tea", user="copied", turn="a turn/1"))
    run(records(world, "Call Ana", "copied"))
    run(refused_turn(world.past.log, "a turn/1", user="copied", reason="fatal"))
    shown = page_of(run(read(world, page.replace("FACT", fact.fact_id), **query)))
    texts = [each.text() for each in shown.css(".commands code") if each.parent.tag == "pre"]
    name, *words = shlex.split(texts[-1])[1:]
    with click.Context(cli) as context:
        command = cli.get_command(context, name)
        assert command is not None
        if name == "dlq":
            assert isinstance(command, click.Group)
            name, command = words[0], command.commands[words.pop(0)]
        assert command.make_context(name, words).params.get("tenant", "acme") == "acme"
    assert len(texts) == (1 if has is None else 2)
    if has is None:
        return
    program, *arguments = shlex.split(texts[0])
    assert (program, arguments[:2]) == ("curl", ["-H", "Authorization: Bearer $MEMSTREAM_TOKEN"])
    body = arguments[arguments.index("-d") + 1] if "-d" in arguments else None

    async def request() -> Any:
        async with called(world.app, token="all") as client:
            path = arguments[-1].removeprefix("http://localhost")
            sent = {"Content-Type": "application/json"}
            return await (client.get(path) if body is None else client.post(path, content=body, headers=sent))

    answer = run(request())
    assert answer.status_code == 200, answer.text
    assert has in answer.text


# ------------------------------------------------------------------------------------------------ hostile text
@pytest.fixture(scope="module")
def harmless(run: Run, world: ConsoleWorld) -> Any:
    run(records(world, "plain words", "harmless"))
    return [shape(page_of(run(read(world, page, user_id="harmless")))) for page in LISTS]


@pytest.mark.parametrize("text", HOSTILE)
def test_stored_text_never_becomes_markup(run: Run, world: ConsoleWorld, harmless: Any, text: str) -> None:
    user = f"hostile {HOSTILE.index(text)}"
    run(records(world, text, user))
    pages = [page_of(run(read(world, page, user_id=user))) for page in LISTS]
    assert [shape(page) for page in pages] == harmless
    for page in pages:
        assert text.partition("\u202e")[0].strip()[:60] in page.css_first("main").text()
