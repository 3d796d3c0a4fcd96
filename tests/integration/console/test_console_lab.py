"""The console's screen Lab over a real store: the answer with its scores, what was left out and why, the context."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from memstream.memory.policies import RecallPolicy
from memstream.recall.recall_events import AnsweredRecall, PublishingRecall
from memstream.recall.service import RecallService
from tests.support.api_server import NoCommands, app_over
from tests.support.console_pages import HOSTILE, called, page_of, shape, words
from tests.support.console_world import TOKENS, ConsoleWorld, Run, console_world
from tests.support.stored_memory import NOW


class Published:
    """A publisher that keeps what it gets."""

    def __init__(self) -> None:
        self.answers: list[AnsweredRecall] = []

    def publish(self, answered: AnsweredRecall) -> None:
        self.answers.append(answered)


PUBLISHED = Published()


@pytest.fixture(scope="module")
def world(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleWorld]:
    opened = console_world(tmp_path_factory.mktemp("lab"))
    made = run(opened.__aenter__())
    service = RecallService(store=made.past.store, embedder=made.memory.embedder, policy=RecallPolicy(patience=30.0))
    recall = PublishingRecall(inner=service, publisher=PUBLISHED)
    made.app = app_over(
        log=made.past.log, store=made.past.store, recall=recall, commands=NoCommands(), credentials=TOKENS
    )
    yield made
    run(opened.__aexit__(None, None, None))


async def read(world: ConsoleWorld, token: str = "all", **query: Any) -> Any:
    async with called(world.app, token=token) as client:
        return await client.get(f"/console/lab?{urlencode({'tenant_id': 'acme'} | query)}")


def contents(page: Any, table: str) -> list[str]:
    return [row.css_first("td bdi").text() for row in page.css(f"#{table} tr")]


def test_the_form_comes_first(run: Run, world: ConsoleWorld) -> None:
    page = page_of(run(read(world, user_id="u1")))
    assert page.css("table") == []
    assert "Enter a user and a cue" in words(page)


def test_an_answer_has_its_scores_and_what_was_left_out(run: Run, world: ConsoleWorld) -> None:
    stripe = run(world.learnt("Works at Stripe", user="lab", turn="t1"))
    run(world.memory.episode("Works at Stripe", owner=stripe.owner))
    for number in range(3):
        run(world.learnt(f"Works on project {number} at night", user="lab", turn=f"n{number}"))
    page = page_of(run(read(world, user_id="lab", cue="Works at Stripe", limit=2)))
    assert contents(page, "answer")[0] == "Works at Stripe"
    first = page.css_first("#answer tr")
    assert stripe.fact_id in str(first.css_first("a").attributes["href"])
    assert "confidence" in first.text()
    assert "lexical 1" in " ".join(first.text(separator=" ").split())
    why = {row.css("td")[0].css_first("bdi").text(): row.css_first(".why").text() for row in page.css("#left-out tr")}
    assert why["Works on project 0 at night"] in ("the answer is full", "its tier already has its share of the answer")
    assert "most of its words are in an item of the answer: Works at Stripe" in " ".join(why["Works at Stripe"].split())
    episode = page.css_first("#left-out a[href*='/episodes/']").attributes["href"]

    async def followed() -> Any:
        async with called(world.app, token="all") as client:
            return await client.get(str(episode))

    assert page_of(run(followed())).css_first("h1").text() == "Works at Stripe"
    assert PUBLISHED.answers == [], "a look into the lab strengthens no memory"


def test_only_a_record_of_a_turn_leads_to_a_turn(run: Run, world: ConsoleWorld) -> None:
    said = run(world.learnt("Works at Stripe", user="hand", turn="t1"))
    added = run(world.learnt("Works on boats", user="hand", turn="edit", said="added by hand"))
    by_hand = added.evidence[0].model_copy(update={"command_id": "00000000-0000-4000-8000-000000000001"})
    run(world.past.put(added.model_copy(update={"evidence": (by_hand,)})))
    for content, command in (("Works as a singer", by_hand.command_id), ("Works at a bar", None)):
        run(world.memory.episode(content, owner=said.owner, turn_id=f"of {content}", command_id=command))
    page = page_of(run(read(world, user_id="hand", cue="Works", limit=20)))
    rows = {row.css_first("bdi").text(): row.css("a[href*='/turns/']") for row in page.css("#answer tr, #left-out tr")}
    linked = {content for content, links in rows.items() if links}
    assert {"Works on boats", "Works as a singer"} & linked == set()
    assert {"Works at Stripe", "Works at a bar"} <= linked
    assert {"Works on boats", "Works as a singer"} <= rows.keys()


def test_a_lowest_score_is_a_reason(run: Run, world: ConsoleWorld) -> None:
    run(world.learnt("Plays the cello", user="score", turn="t1"))
    page = page_of(run(read(world, user_id="score", cue="submarine", min_score=1)))
    assert "No search found a memory" in words(page)
    assert {row.css_first(".why").text() for row in page.css("#left-out tr")} == {"its score is below min_score"}


def test_the_context_has_tokens_by_section(run: Run, world: ConsoleWorld) -> None:
    run(world.learnt("Prefers green tea", user="context", turn="t1"))
    run(world.learnt("Prefers a very long walk through the old town with both of her dogs", user="context", turn="t2"))
    page = page_of(run(read(world, user_id="context", cue="tea", preset="full")))
    assert "Prefers green tea" in page.css_first("#context").text()
    sections = {row.css("td")[0].text(): int(row.css("td")[1].text()) for row in page.css("#sections tr")}
    assert 0 < sections["semantic"] < 100
    whole = next(int(each) for each in words(page, "main > section:last-of-type h2").split() if each.isdigit())
    small = page_of(run(read(world, user_id="context", cue="tea", preset="full", max_tokens=whole - 1)))
    assert "there is no room within max_tokens" in words(small, "#unshown")


def test_a_pinned_fact_says_why_it_is_in_the_context(run: Run, world: ConsoleWorld) -> None:
    fact = run(world.learnt("Is allergic to nuts", user="pinned", turn="t1", pinned_at=NOW))
    run(world.learnt("Prefers green tea", user="pinned", turn="t2"))
    page = page_of(run(read(world, user_id="pinned", cue="green tea", min_score=0.5)))
    assert words(page, "#pinned") == "In the context because of their pins: Is allergic to nuts"
    assert fact.fact_id in str(page.css_first("#pinned a").attributes["href"])
    assert "Is allergic to nuts" in page.css_first("#context").text()
    without = page_of(run(read(world, user_id="pinned", cue="green tea", preset="small")))
    assert without.css_first("#pinned") is None


def test_two_answers_are_next_to_each_other_and_differences_are_marked(run: Run, world: ConsoleWorld) -> None:
    later, word = NOW + timedelta(days=30), "2026-12-10T00:00:00Z"
    run(world.learnt("Works at Google", user="two", turn="t1", valid_to=later, state="superseded"))
    run(world.learnt("Works at Stripe", user="two", turn="t2", valid_from=later))
    run(world.learnt("Works on Sundays", user="two", turn="t3"))
    asked = {"user_id": "two", "cue": "Works at", "preset": "full"}
    one = page_of(run(read(world, as_of=word, **asked)))
    assert one.css(".differs") == []
    page = page_of(run(read(world, as_of=word, other_as_of="2027-02-01T00:00:00Z", **asked)))

    def rows(table: str) -> dict[str, str]:
        return {row.css_first("td bdi").text(): " ".join(tag.text() for tag in row.css(".differs"))
                for row in page.css(f"#{table} tr") if "semantic" in row.css_first(".meta").text()}  # fmt: skip

    assert rows("answer")["Works at Google"] == rows("other-answer")["Works at Stripe"] == "not in the other answer"
    assert "Works at Stripe" not in rows("answer")
    assert rows("answer")["Works on Sundays"] in ("", "2 in the other answer")
    assert [" ".join(each.text().split()) for each in page.css("section > .meta")][:2] == [
        "true at 2026-12-10 00:00:00 UTC", "true at 2027-02-01 00:00:00 UTC"
    ]  # fmt: skip
    marked = [[each.text() for each in page.css(f"#{text} mark")] for text in ("context", "other-context")]
    assert [sum("Google" in line for line in lines) for lines in marked] == [1, 0]
    assert [sum("Stripe" in line for line in lines) for lines in marked] == [0, 1]
    assert not any(word in line for word in ("Sundays", "[memory") for lines in marked for line in lines)


def test_two_profiles_rank_and_two_presets_show(run: Run, world: ConsoleWorld) -> None:
    for number in range(3):
        run(
            world.learnt(
                f"Walks {'far ' * number}on Sundays", user="rank", turn=f"t{number}", confidence=0.9 - number / 5
            )
        )
    asked = {"user_id": "rank", "cue": "walks"}
    page = page_of(run(read(world, profile="memstream", other_profile="composite", other_limit=1, **asked)))
    parts = [{each.text().split()[0] for each in page.css(f"#{table} tr td:nth-child(3) .part")}
             for table in ("answer", "other-answer")]  # fmt: skip
    assert parts[0] != parts[1]
    assert len(page.css("#other-answer tr")) == 1
    page = page_of(run(read(world, preset="small", other_preset="full", **asked)))
    assert [" ".join(each.text().split()) for each in page.css("section > .meta")][:2] == [
        "preset small",
        "preset full",
    ]


def test_what_a_caller_may_not_see_is_not_in_the_page(run: Run, world: ConsoleWorld) -> None:
    run(world.learnt("Has a hidden illness", user="rights", sensitivity="secret", message={"sensitivity": "secret"}))
    answer = run(read(world, user_id="rights", cue="illness"))
    assert "hidden illness" not in answer.text
    assert "Has a hidden illness" in words(page_of(run(read(world, user_id="rights", cue="illness", ceiling="secret"))))
    for wrong in ({"ceiling": "secret"}, {"tenant_id": "rival"}):
        assert run(read(world, "reader", **{"user_id": "rights", "cue": "x"} | wrong)).status_code == 403
    assert run(read(world, "bound", user_id="rights", cue="illness")).status_code == 403
    assert page_of(run(read(world, "bound", cue="illness"))).css("#answer tr") == []
    for wrong in ({"as_of": "yesterday"}, {"limit": "0"}, {"preset": "huge"}, {"cue": "x" * 2_001}):
        assert run(read(world, **{"user_id": "rights", "cue": "x"} | wrong)).status_code == 422


async def page_with(world: ConsoleWorld, value: str, user: str) -> Any:
    short = value[:60]
    await world.learnt(value, user=user, turn=f"t {short}", said=f"{value} it is", message={"name": short},
                       subject=short, seen={"subject": short})  # fmt: skip
    return page_of(await read(world, user_id=user, cue=value, preset="full"))


@pytest.mark.parametrize("text", HOSTILE)
def test_stored_text_never_becomes_markup(run: Run, world: ConsoleWorld, text: str) -> None:
    page = run(page_with(world, text, f"hostile {HOSTILE.index(text)}"))
    assert {*shape(page)} <= {*shape(run(page_with(world, "plain words", "harmless")))} | {"ul", "li", "pre", "h3"}
    assert not set("\u202e\u200b\u2066") & set(page.css_first("main").text())
