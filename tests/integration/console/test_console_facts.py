"""The console's pages of facts over a real store and log: what they show, to whom, and the forms."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memstream.memory.facts.relations import Relation
from memstream.recall.recall_events import AnsweredRecall, records_of
from memstream.recall.recall_events import send as send_report
from memstream.schemas.commands import Command, CommandResult, ResultError
from memstream.schemas.facts import Decision, FactCause, StoredFact
from memstream.schemas.observations import ObservedBy, TokenUsage
from tests.support.console_pages import HOSTILE, called, page_of, shape, words
from tests.support.console_world import ConsoleWorld, Run
from tests.support.stored_memory import NOW


async def read(world: ConsoleWorld, path: str, token: str = "all") -> Any:
    async with called(world.app, token=token) as client:
        return await client.get(path)


def path_of(fact: StoredFact, **query: str) -> str:
    asked = "".join(f"&{name}={value}" for name, value in query.items())
    return f"/console/facts/{fact.fact_id}?tenant_id={fact.tenant_id}{asked}"


# ------------------------------------------------------------------------------------------------ the screen
def test_a_fact_shows_why_it_is_believed(run: Run, world: ConsoleWorld) -> None:
    google = run(world.learnt("Works at Google", turn="google", user="why"))
    stripe = run(
        world.learnt(
            "Works at Stripe",
            turn="stripe",
            user="why",
            said="Guess what, I left Google. I NOW  work at Stripe. Nice, no?",
            quote="I now work at Stripe.",
            slot="employer",
            value="Stripe",
            supersedes=google.fact_id,
            event={"decision": Decision(stage="replaces", similarity=0.83, zone="CONFLICT-CHECK",
                                        other_fact_id=google.fact_id), "reason": "another value"},
            record={"cause": ObservedBy(model="m", usage=TokenUsage(calls=1, input_tokens=812, output_tokens=64))},
        )
    )  # fmt: skip
    newer = stripe.model_copy(update={"version": 2, "content": "Works at Stripe in Berlin"})
    cause = FactCause(command_id="00000000-0000-4000-8000-000000000001", issued_by="cli:ana")
    run(world.changed(newer, stripe.public(), cause=cause, reason="she told support"))
    run(world.past.put(newer))

    page = page_of(run(read(world, path_of(stripe))))
    assert page.css_first("h1").text() == "Works at Stripe in Berlin"
    assert [mark.text() for mark in page.css("mark")] == ["I NOW  work at Stripe."]
    shown = words(page)
    for text in ("employer : Stripe", "superseded" if stripe.state == "superseded" else "active", "internal", "user"):
        assert text in shown, text
    newest, oldest = page.css("ol.timeline > li")
    newest_text, oldest_text = (" ".join(each.text(separator=" ").split()) for each in (newest, oldest))
    assert "updated version 2" in newest_text
    assert "before: Works at Stripe" in newest_text
    assert "00000000-0000-4000-8000-000000000001 by cli:ana" in newest_text
    assert "she told support" in newest_text
    assert "decided by replaces : the observer's model named the fact that the statement replaces" in oldest_text
    assert "compared with Works at Google , similarity 0.83 (near, zone CONFLICT-CHECK)" in oldest_text
    assert "Tokens 812 in, 64 out" in oldest_text
    assert "Tokens" not in newest_text
    assert "small-model" in oldest_text
    assert "observe/v2:sha256abc" in oldest_text
    compared = oldest.css_first(".decision a").attributes["href"]
    other = page_of(run(read(world, str(compared))))
    assert other.css_first("h1").text() == "Works at Google"


def test_the_turn_that_ended_a_fact_is_no_reason_for_it(run: Run, world: ConsoleWorld) -> None:
    google = run(world.learnt("Works at Google", turn="first", user="ended"))
    stripe = run(world.learnt("Works at Stripe", turn="second", user="ended"))
    said = stripe.evidence[0].observation_id
    closed = google.model_copy(update={"version": 2, "state": "superseded", "superseded_by": stripe.fact_id})
    cause = FactCause(turn_ids=("second",), observation_ids=(said,))
    run(world.changed(closed, google.public(), action="superseded", cause=cause, reason=Relation.OTHER.value))
    run(world.past.put(closed))
    page = page_of(run(read(world, path_of(closed))))
    assert words(page, "#why h2") == "Why memory believed it"
    assert [mark.text() for mark in page.css("#why mark")] == ["Works at Google"]
    assert [mark.text() for mark in page.css("#end mark")] == ["Works at Stripe"]
    assert "another value was said, and only one value is true at a time : Works at Stripe" in words(page, "#end")
    for kept in (google, stripe):
        run(world.past.put(kept.model_copy(update={"version": 3})))
        assert page_of(run(read(world, path_of(kept)))).css_first("#why mark").text() == kept.content


def test_a_fact_shows_who_recalled_it(run: Run, world: ConsoleWorld) -> None:
    fact = run(world.learnt("Plays chess", user="recalled"))
    path = path_of(fact)
    assert "No answer of the last day" in words(page_of(run(read(world, path))), "#recalls")
    items: Any = [("semantic", "another"), ("semantic", fact.fact_id)]
    for minute, name in enumerate(("old", "eva", "")):
        at = NOW + timedelta(minutes=minute)
        for report in records_of(AnsweredRecall("acme", (fact.owner,), "chess", items[minute % 2 :], at, name)):
            for _ in range(2):  # a report may be sent twice
                run(send_report(report, to=world.past.log))
    other = AnsweredRecall("acme", (fact.owner,), None, items[:1], NOW, "not this fact")
    run(send_report(records_of(other)[0], to=world.past.log))
    assert [" ".join(each.text().split()) for each in page_of(run(read(world, path))).css("#recalls li")] == [
        "an unknown caller, 2026-11-20 10:02:00 UTC, place 2",
        "eva, 2026-11-20 10:01:00 UTC, place 1",
        "old, 2026-11-20 10:00:00 UTC, place 2",
    ]


def test_a_corrected_fact_was_never_true(run: Run, world: ConsoleWorld) -> None:
    berlin = run(world.learnt("Lives in Berlin", user="corrected", state="invalidated"))
    page = page_of(run(read(world, path_of(berlin))))
    assert "It was never true." in words(page, "h1 ~ p:not(.meta)")
    assert "True in the world never Known to memory" in words(page)


def test_an_id_of_an_episode_leads_to_its_turn(run: Run, world: ConsoleWorld) -> None:
    fact = run(world.learnt("Runs marathons", user="past", turn="run"))
    episode = run(world.memory.episode("Ran in Rome", owner=fact.owner, turn_id="run", evidence="I ran in Rome"))
    run(world.past.put(fact.model_copy(update={"source_episode_ids": (episode,)})))
    link = page_of(run(read(world, path_of(fact)))).css_first("a[href*='/episodes/']")
    assert link.text() == episode
    page = page_of(run(read(world, str(link.attributes["href"]))))
    assert page.css_first("h1").text() == "Ran in Rome"
    assert "I ran in Rome" in words(page)
    turn = page.css_first("dl a[href*='/turns/']").attributes["href"]
    assert page_of(run(read(world, str(turn)))).css_first(".turn h2 a").text() == "run"


def test_an_episode_is_shown_only_to_those_who_may_read_it(run: Run, world: ConsoleWorld) -> None:
    async def status(episode: str, token: str, query: str = "tenant_id=acme") -> int:
        return int((await read(world, f"/console/episodes/{episode}?{query}", token)).status_code)

    secret = run(world.memory.episode("Has a debt", sensitivity="secret"))
    plain = run(world.memory.episode("Moved to Rome"))
    deleted = run(world.memory.episode("Moved to Bern", deleted_at=NOW))
    assert run(status(plain, "reader")) == 200
    assert run(status(secret, "all", "tenant_id=acme&ceiling=secret")) == 200
    assert run(status(secret, "reader", "tenant_id=acme&ceiling=secret")) == 403
    assert run(status(plain, "reader", "tenant_id=rival")) == 403
    for episode, token, query in (
        (secret, "all", "tenant_id=acme"),
        (plain, "bound", "tenant_id=acme"),
        (plain, "all", "tenant_id=rival"),
        (deleted, "all", "tenant_id=acme"),
    ):
        assert run(status(episode, token, query)) == 404, (token, query)


def test_a_fact_of_a_command_names_who_added_it(run: Run, world: ConsoleWorld) -> None:
    fact = run(world.learnt("Owns a boat", user="told"))
    told = fact.model_copy(update={"evidence": (), "version": 1, "fact_id": "00000000-0000-4000-8000-0000000000b0"})
    cause = FactCause(command_id="00000000-0000-4000-8000-00000000000c", issued_by="support-eva")
    run(world.changed(told, None, action="new", cause=cause))
    run(world.past.put(told))
    page = page_of(run(read(world, path_of(told))))
    assert "No turn is behind this fact: a command of support-eva added it" in words(page, "#why")
    (entry,) = {each.attributes["href"] for each in page.css("#why a, .cause a.id")}
    assert page.css_first(f".timeline {entry}") is not None


def test_a_list_leads_to_each_fact(run: Run, world: ConsoleWorld) -> None:
    fact = run(world.learnt("Drinks tea", user="list"))
    page = page_of(run(read(world, "/console/facts?tenant_id=acme&user_id=list&state=&subject=")))
    (link,) = page.css("ul.records a")
    assert link.text() == "Drinks tea"
    assert page_of(run(read(world, str(link.attributes["href"])))).css_first("h1").text() == "Drinks tea"
    assert fact.fact_id in str(link.attributes["href"])


def test_a_long_list_has_pages(run: Run, world: ConsoleWorld) -> None:
    facts = [run(world.learnt(f"Likes number {n}", turn=f"p{n}", user="pages")).content for n in range(3)]
    path = "/console/facts?tenant_id=acme&user_id=pages&limit=2"
    first = page_of(run(read(world, path)))
    more = first.css_first("a.button").attributes["href"]
    second = page_of(run(read(world, str(more))))
    assert sorted(a.text() for page in (first, second) for a in page.css("ul.records a")) == facts
    assert second.css_first("a.button") is None


def test_an_empty_list_says_what_to_do(run: Run, world: ConsoleWorld) -> None:
    page = page_of(run(read(world, "/console/facts?tenant_id=acme&user_id=nobody")))
    assert "memstream doctor" in words(page, ".empty")
    for link in page.css(".empty a"):
        page_of(run(read(world, str(link.attributes["href"]))))
    review = page_of(run(read(world, "/console/facts?tenant_id=acme&user_id=nobody&state=quarantined")))
    assert words(review, "h1").startswith("Quarantined facts of user nobody")
    assert [each for each in review.css(".empty a") if "state=quarantined" in str(each.attributes["href"])] == []


def test_a_list_of_active_facts_leads_to_those_that_were_replaced(run: Run, world: ConsoleWorld) -> None:
    run(world.learnt("Works at Google", user="past", turn="over", state="superseded"))
    run(world.learnt("Works at Stripe", user="past", turn="now"))
    page = page_of(run(read(world, "/console/facts?tenant_id=acme&user_id=past")))
    assert "Works at Google" not in words(page)
    link = page.css_first(".hint a[href*='state=all']").attributes["href"]
    assert "Works at Google" in words(page_of(run(read(world, str(link)))))


def test_a_fact_without_sources_says_so(run: Run, world: ConsoleWorld) -> None:
    fact = run(world.learnt("Came by command", user="bare", evidence=()))
    bare = fact.model_copy(update={"evidence": (), "fact_id": fact.fact_id[:-4] + "0000"})
    run(world.past.put(bare))
    page = page_of(run(read(world, path_of(bare))))
    assert "No turn is behind this fact" in words(page)
    assert "The log has no change of this fact" in words(page)


# ------------------------------------------------------------------------------------------------ rights
def test_what_a_caller_may_not_see_is_not_in_the_page(run: Run, world: ConsoleWorld) -> None:
    secret = run(world.learnt("Has a hidden illness", user="rights", turn="r1", sensitivity="secret",
                              seen={"sensitivity": "secret"}, message={"sensitivity": "secret"}))  # fmt: skip
    open_fact = run(
        world.learnt("Lives in Rome", user="rights", turn="r2",
                     event={"decision": Decision(stage="admit", other_fact_id=secret.fact_id, similarity=0.2)})
    )  # fmt: skip
    page = run(read(world, path_of(open_fact)))
    assert "hidden illness" not in page.text
    assert run(read(world, path_of(secret))).status_code == 404
    assert run(read(world, path_of(secret, ceiling="secret"), "reader")).status_code == 403
    shown = run(read(world, path_of(secret, ceiling="secret")))
    assert "Has a hidden illness" in words(page_of(shown))
    listed = run(read(world, "/console/facts?tenant_id=acme&user_id=rights"))
    assert "hidden illness" not in listed.text
    options = [
        each.text() for each in page_of(run(read(world, "/console/facts?user_id=x", "reader"))).css("#ceiling option")
    ]
    assert options == ["public", "internal"]


def test_two_tenants_and_two_users_see_their_own(run: Run, world: ConsoleWorld) -> None:
    mine = run(world.learnt("Only for acme", user="u1"))
    theirs = run(world.learnt("Only for rival", user="u1", tenant="rival"))
    assert run(read(world, path_of(theirs), "reader")).status_code == 403
    lost = run(read(world, f"/console/facts/{theirs.fact_id}", "reader"))
    assert lost.status_code == 404
    assert "Only for rival" not in lost.text
    for path in (path_of(mine), f"/console/facts/{mine.fact_id}"):
        answer = run(read(world, path, "bound"))
        assert answer.status_code == 404
        assert "Only for acme" not in answer.text
    assert run(read(world, "/console/facts?user_id=u1", "bound")).status_code == 403
    assert page_of(run(read(world, "/console/facts", "bound"))).css("ul.records") == []


@pytest.mark.parametrize(
    ("token", "state", "actions"),
    [
        ("all", "active", ["confirm", "pin", "edit", "supersede", "forget"]),
        ("all", "quarantined", ["approve", "reject", "forget"]),
        ("all", "pending", ["approve", "reject", "edit", "forget"]),
        ("all", "superseded", ["forget"]),
        ("all", "forgotten", []),
        ("reader", "active", []),
        ("reader", "quarantined", []),
    ],
)
def test_actions_are_offered_by_right_and_state(
    run: Run, world: ConsoleWorld, token: str, state: str, actions: list[str]
) -> None:
    fact = run(world.learnt(f"Is {state}", turn=state, user="acts", state=state))
    page = page_of(run(read(world, path_of(fact), token)))
    assert "pinned" not in words(page, ".meta")
    offered = [str(form.attributes["action"]).rpartition("/")[2] for form in page.css(".actions form")]
    assert offered == actions


def test_a_pin_is_shown_and_can_be_taken_off(run: Run, world: ConsoleWorld) -> None:
    fact = run(world.learnt("Is allergic to nuts", turn="pinned", user="pins", pinned_at=NOW))
    closed = run(world.learnt("Was pinned", turn="closed", user="pins", pinned_at=NOW, state="superseded"))
    page = page_of(run(read(world, path_of(fact))))
    assert "active pinned version 1" in words(page, ".meta")
    offered = [str(form.attributes["action"]).rpartition("/")[2] for form in page.css(".actions form")]
    assert offered == ["confirm", "unpin", "edit", "supersede", "forget"]
    assert "pinned" not in words(page_of(run(read(world, path_of(closed)))), ".meta")
    listed = page_of(run(read(world, "/console/facts?tenant_id=acme&user_id=pins&state=all")))
    tags = {row.css_first("a").text(): [tag.text() for tag in row.css(".tag")] for row in listed.css("ul.records li")}
    assert tags == {"Is allergic to nuts": ["pinned"], "Was pinned": []}
    answer = run(send(world, fact, "unpin"))
    assert (answer.status_code, world.commands.asked[-1][0].kind) == (303, "facts.unpin")


# ------------------------------------------------------------------------------------------------ forms
async def send(world: ConsoleWorld, fact: StoredFact, action: str, token: str = "all", **fields: str) -> Any:
    """Fill in the form of the page and send it, like a browser."""
    async with called(world.app, token=token) as client:
        page = page_of(await client.get(path_of(fact)))
        form = page.css_first(f"form[action$='/{action}']")
        assert form is not None, action
        given = {
            str(field.attributes["name"]): field.attributes.get("value")
            or (field.text() if field.tag == "textarea" else "")
            for field in form.css("input, textarea")
        }
        return await client.post(str(form.attributes["action"]), data=given | fields)


@pytest.mark.parametrize(
    ("action", "state", "fields", "kind", "args"),
    [
        ("approve", "quarantined", {"reason": "he wants it"}, "facts.approve", {"reason": "he wants it"}),
        ("reject", "pending", {}, "facts.reject", {}),
        ("confirm", "active", {}, "facts.reinforce", {}),
        ("pin", "active", {"reason": "asked"}, "facts.pin", {"reason": "asked"}),
        ("edit", "active", {"content": "Better"}, "facts.update", {"content": "Better", "expected_version": 1}),
        ("supersede", "active", {"content": "Works at Visa"}, "facts.supersede", {"content": "Works at Visa"}),
        ("forget", "active", {"reason": "wrong"}, "facts.forget", {"reason": "wrong"}),
        ("forget", "active", {"because": "wrong"}, "facts.forget", {"because": "wrong"}),
    ],
)  # fmt: skip
def test_a_form_sends_the_edit_of_the_rest_api(
    run: Run, world: ConsoleWorld, action: str, state: str, fields: dict[str, str], kind: str, args: dict[str, Any]
) -> None:
    fact = run(world.learnt(f"To {action}", turn=action, user="forms", state=state))
    before = len(world.commands.asked)
    answer = run(send(world, fact, action, **fields))
    assert answer.status_code == 303, answer.text
    ((command, _),) = world.commands.asked[before:]
    assert (command.kind, command.tenant_id, command.owner, command.issued_by) == (kind, "acme", fact.owner, "all")
    sent = {name: value for name, value in command.args.items() if value not in ("", None, [], "user")}
    assert sent == {"fact_id": fact.fact_id, **args}
    page = page_of(run(read(world, answer.headers["location"])))
    assert "waits in the log" in words(page, ".notice")


def test_an_applied_and_a_refused_edit_are_told(run: Run, world: ConsoleWorld) -> None:
    fact = run(world.learnt("To be refused", turn="refused", user="forms"))

    def refused(command: Command) -> CommandResult:
        error = ResultError(code="stale", message="the fact has version 7 now <b>read it again</b>")
        return CommandResult(command_id=command.command_id, status="refused", error=error, at=NOW)

    def applied(command: Command) -> CommandResult:
        result: Any = {"fact_id": fact.fact_id, "forgotten": True}
        return CommandResult(command_id=command.command_id, status="applied", result=result, at=NOW)

    world.commands.result = refused
    try:
        answer = run(send(world, fact, "edit", content="Other words"))
        assert answer.status_code == 409
        page = page_of(answer)
        assert "version 7 now <b>read it again</b>" in words(page, ".notice")
        world.commands.result = applied
        done = run(send(world, fact, "forget"))
        assert "Done" in words(page_of(run(read(world, done.headers["location"]))), ".notice")
    finally:
        world.commands.result = lambda command: None


def test_a_form_without_right_or_token_changes_nothing(run: Run, world: ConsoleWorld) -> None:
    fact = run(world.learnt("Stays", turn="stays", user="forms"))

    async def post(token: str, action: str, **fields: str) -> int:
        async with called(world.app, token=token) as client:
            page = page_of(await client.get("/console"))
            csrf = page.css_first("input[name=csrf]").attributes["value"] or ""
            given = {"csrf": csrf, "tenant_id": "acme"} | fields
            return (await client.post(f"/console/facts/{fact.fact_id}/{action}", data=given)).status_code

    before = len(world.commands.asked)
    assert run(post("reader", "forget")) == 403
    assert run(post("reader", "approve")) == 403
    assert run(post("all", "forget", csrf="0" * 64)) == 403
    assert run(post("all", "forget", tenant_id="unknown")) == 403
    assert run(post("bound", "forget")) == 404
    assert run(post("bound", "approve")) == 404
    assert run(post("all", "destroy")) == 422
    for blank in ("", " \r\n\t"):
        assert run(post("all", "edit", content=blank)) == 422
        assert run(post("all", "supersede", content=blank)) == 422
    assert run(post("all", "edit", content="x", unknown="1")) == 422
    assert len(world.commands.asked) == before


# ------------------------------------------------------------------------------------------------ hostile text
async def pages_with(world: ConsoleWorld, value: str, user: str) -> list[Any]:
    """Remember a text in every field that can have it, and return the pages that show it."""
    short = value[:60]
    fact = await world.learnt(
        value, user=user, turn=f"t {short}", said=f"I say {value} often", quote=value,
        seen={"subject": short}, message={"name": short}, subject=short, value=short, qualifier=short,
        tags=(short,), metadata={short: short}, state="quarantined",
        event={"reason": value, "decision": Decision(stage=short),
               "cause": FactCause(turn_ids=(short,), command_id=short[:36], issued_by=short, model=short,
                                  prompt=short)},
    )  # fmt: skip
    newer = fact.model_copy(update={"version": 2, "content": value + " more"})
    await world.changed(newer, fact.public(), reason=value)
    await world.past.put(newer)
    for report in records_of(AnsweredRecall("acme", (fact.owner,), value, [("semantic", fact.fact_id)], NOW, short)):
        await send_report(report, to=world.past.log)
    turns = {"subject": short, "session_id": short, "turn_id": short, "turn_ids": (f"t {short}", short)}
    episode = await world.memory.episode(value, owner=fact.owner, **turns)
    return [
        page_of(await read(world, path_of(newer))),
        page_of(await read(world, f"/console/episodes/{episode}?tenant_id=acme")),
        page_of(await read(world, f"/console/facts?tenant_id=acme&state=quarantined&user_id={user}")),
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
