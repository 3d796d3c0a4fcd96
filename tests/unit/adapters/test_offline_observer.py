"""Answers of the offline observer beyond single sentences: prompts, links between statements, several turns,
evidence."""

from __future__ import annotations

import time
import unicodedata
from datetime import UTC, datetime
from uuid import NAMESPACE_OID, uuid5

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from memstream.adapters.completions.offline import OfflineCompletions, why_silent
from memstream.adapters.completions.offline.prompt import read_prompt
from memstream.adapters.completions.offline.voice import Silence
from memstream.adapters.ports import CompletionRequest, Message
from memstream.agents.observer.answer_schema import TASK, WHOLE
from memstream.agents.observer.prompt import ObservePrompt, ShownTurn
from memstream.agents.observer.speakers import ShownMessage
from memstream.memory.policies import CapturePolicy
from memstream.schemas.working_set import WorkingEntry, WorkingSet
from tests.support.completion_requests import Json, Ledger, observe
from tests.support.openai_bodies import OBSERVATION
from tests.support.prompt_view import view

Known = tuple[str, str]


async def answer(*turns: str, known: tuple[Known, ...] = (), context: tuple[str, ...] = ()) -> list[Json]:
    request = observe(*turns, known=known, context=context)
    return (await OfflineCompletions(sink=Ledger()).complete(request)).value


def brief(items: list[Json]) -> list[tuple[object, ...]]:
    return [(item["subject"], item["content"], item["replaces"], item["is_correction"]) for item in items]


async def test_an_observation_has_every_field_of_the_contract() -> None:
    [item] = await answer("user: I work at Acme.")
    assert item.keys() == OBSERVATION.keys() | {"slot", "value", "denied", "qualifier"}
    assert item["durability"] == "persistent"
    assert item["category"] == "profession"
    assert item["evidence"] == "I work at Acme."


async def test_only_the_user_is_listened_to() -> None:
    assert await answer("assistant: I live in a data centre in Oslo.\nI work at Acme.\ntool: I live in Rome.") == []


async def test_a_message_may_span_lines_and_turns_without_speakers_are_the_users() -> None:
    said = await answer("user: Hello\nI live in Rome.\nassistant: I live in Oslo.\nuser: I have a cat named Tom.")
    assert [item["content"] for item in said] == ["Lives in Rome", "Has a cat named Tom"]
    assert [item["content"] for item in await answer("I live in Rome.")] == ["Lives in Rome"]


async def test_context_is_not_extracted_from() -> None:
    assert await answer("user: yes, that one", context=("I live in Rome.",)) == []


async def test_examples_in_instructions_are_not_the_working_set() -> None:
    request = observe("user: I work at Acme.")
    system = Message("system", "For example:\n## user\n[w1] Works at Globex")
    prompt = read_prompt((system, *request.messages[1:]))
    assert prompt.working == ()


@pytest.mark.parametrize("heading", ["user", "## user", "About user:", "**user**", "### Subject: user (the speaker)"])
def test_headings_are_subjects_however_they_are_marked_up(heading: str) -> None:
    text = f"{heading}\n[w1] Works at Globex\n## anna\n[w2] Lives in Rome\n[t1]\nuser: hi"
    prompt = read_prompt((Message("user", text),))
    assert [(known.id, known.subject) for known in prompt.working] == [("w1", "user"), ("w2", "anna")]


def _entry(subject: str, content: str) -> WorkingEntry:
    some_id = str(uuid5(NAMESPACE_OID, content))
    return WorkingEntry(
        entry_id=some_id,
        observation_id=some_id,
        content=content,
        subject=subject,
        category="attribute",
        durability="persistent",
        importance=0.5,
        salience=0.5,
        created_turn=1,
        last_access_turn=1,
    )


async def test_the_observers_own_prompt_is_understood() -> None:
    """Uses the real prompt and the real parser."""
    at = datetime(2026, 11, 20, tzinfo=UTC)
    said = "I moved to Oslo.\n[w1] And my sister Anna works at Acme."
    turn = ShownTurn("t-77", at, (ShownMessage("user", said),))
    entries = [("user", "Lives in Rome"), ("mary ann", "Lives in Bonn")]
    working = WorkingSet(entries=tuple(_entry(subject, content) for subject, content in entries))
    shown = ObservePrompt(turns=(turn,), working=working, recent=(), policy=CapturePolicy())
    request = CompletionRequest(
        task=TASK, tenant_id="acme", messages=shown.messages(), json_schema=WHOLE.one, parse=WHOLE.parse
    )
    prompt = read_prompt(request.messages)
    assert [(known.subject, known.content) for known in prompt.working] == entries
    answer = (await OfflineCompletions(sink=Ledger()).complete(request)).value
    assert answer.dropped == 0
    assert [(item.subject, item.content, item.replaces) for _, item in answer.items] == [
        ("user", "Lives in Oslo", "w1"),
        ("user", "Has a sister named Anna", None),
        ("anna", "Works at Acme", None),
    ]


async def test_lines_that_look_like_ids_are_text_inside_a_turn() -> None:
    said = await answer("user: list:\n  \\[w1] I live in Rome.\nI work at Acme.", known=(("user", "Works at Globex"),))
    assert ("user", "Works at Acme", "w1", False) in brief(said)


def test_escaped_lines_are_read_without_their_backslash() -> None:
    [turn] = read_prompt((Message("user", "[t1]\nuser: a\n  \\[w1] b\n\\[x] c"),)).turns
    assert turn.said == ("a\n  [w1] b\n\\[x] c",)


# ------------------------------------------------------------------------------------------------ linking
@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("I joined Acme last month.", "Works at Globex", ("user", "Works at Acme", "w1", False)),
        ("I work at Globex.", "Works at Globex", ("user", "Works at Globex", None, False)),
        ("I work for Globex.", "Works at Globex", ("user", "Works at Globex", None, False)),
        ("Actually, I live in Bonn.", "Lives in Cologne", ("user", "Lives in Bonn", "w1", True)),
        ("Actually, I moved to Bonn.", "Lives in Cologne", ("user", "Lives in Bonn", "w1", False)),
        ("Sorry for the delay, I moved to Oslo.", "Lives in Bonn", ("user", "Lives in Oslo", "w1", False)),
        ("I meant Bonn, not Cologne.", "Lives in Cologne", ("user", "Lives in Bonn", "w1", True)),
        ("I have a cat named Tom.", "Has a dog named Rex", ("user", "Has a cat named Tom", None, False)),
        ("I have a dog named Max.", "Has a dog named Rex", ("user", "Has a dog named Max", None, False)),
        ("I love jazz.", "Dislikes jazz", ("user", "Loves jazz", "w1", False)),
        ("I love jazz.", "Likes tea", ("user", "Loves jazz", None, False)),
        ("I no longer work at Globex.", "Works at Globex", ("user", "No longer works at Globex", "w1", False)),
        ("I quit my job at Globex.", "Works at Globex", ("user", "No longer works at Globex", "w1", False)),
        ("I switched from tea to coffee.", "Prefers tea", ("user", "Prefers coffee", "w1", False)),
    ],
)
async def test_what_replaces_what(text: str, known: str, expected: tuple[object, ...]) -> None:
    assert brief(await answer(f"user: {text}", known=(("user", known),))) == [expected]


async def test_an_ended_statement_makes_no_fact() -> None:
    [item] = await answer("user: I left Globex.", known=(("user", "Works at Globex"),))
    assert (item["durability"], item["category"], item["replaces"]) == ("session", "event", "w1")


async def test_only_the_same_subject_is_replaced() -> None:
    said = await answer("user: I moved to Oslo.", known=(("anna", "Lives in Rome"),))
    assert brief(said) == [("user", "Lives in Oslo", None, False)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Berta moved to Oslo.", [("berta", "Lives in Oslo", None, False)]),
        ("Jonas left Siemens and works at Bosch now.", [("jonas", "Works at Bosch", None, False)]),
        ("Jonas left Siemens.", [("jonas", "No longer works at Siemens", None, False)]),
        ("We moved to Oslo.", [("user", "Lives in Oslo", None, False)]),
        ("She moved to Oslo.", []),
        ("Everyone left Siemens.", []),
        ("Google bought a company.", []),
    ],
)
async def test_a_bare_first_name_is_understood_where_only_a_person_is_meant(
    text: str, expected: list[tuple[str, str, str | None, bool]]
) -> None:
    assert brief(await answer(f"user: {text}")) == expected


@pytest.mark.parametrize(
    ("text", "content", "category"),
    [
        ("I quit my job at Globex.", "No longer works at Globex", "profession"),
        ("I got laid off by Globex last week.", "No longer works at Globex", "profession"),
        ("I don't have a cat any more.", "No longer has a cat", "relationship"),
        ("We no longer live in Oslo.", "No longer lives in Oslo", "attribute"),
        ("I'm not vegan anymore, sorry.", "Is no longer vegan", "preference"),
        ("I stopped playing the violin.", "No longer plays the violin", "attribute"),
        ("I quit smoking last year!", "Does not smoke", "preference"),
        ("We gave up eating meat.", "Does not eat meat", "preference"),
        ("Our dog died in spring.", "No longer has a dog", "relationship"),
        ("I moved out of Oslo in May.", "No longer lives in Oslo", "attribute"),
    ],
)
async def test_what_ended_is_told_though_nothing_of_it_is_shown(text: str, content: str, category: str) -> None:
    (told,) = await answer(f"user: {text}")
    assert (told["content"], told["category"], told["replaces"], told["durability"]) == (
        content,
        category,
        None,
        "persistent",
    )


@pytest.mark.parametrize(
    "text",
    ["I left the party early.", "I don't have time.", "I might quit my job at Globex.", "I stopped at a shop."],
)
async def test_what_is_no_end_of_anything_known_is_silence(text: str) -> None:
    assert await answer(f"user: {text}") == []


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("I'm allergic to nuts, can I eat marzipan?", ["Is allergic to nuts"]),
        ("My wife Carla is a dentist, do you know a good lamp?", ["Has a wife named Carla", "Works as a dentist"]),
        ("If I live in Oslo, can I vote?", []),
        ("Do I live in Oslo, or what?", []),
        ("I live in Oslo with my brother Paul.", ["Lives in Oslo", "Has a brother named Paul"]),
        ("I'm 34, not 43.", ["Is 34 years old"]),
        ("We live in Turin now, no longer in Rome.", ["Lives in Turin"]),
        ("My favourite colour is now blue.", ["Favourite colour is blue"]),
        ("My aunt moved to Naples.", ["Aunt lives in Naples"]),
        ("They made me head of sales.", ["Works as head of sales"]),
        ("I get up at six every day.", ["Gets up at six every day"]),
        ("I think about jazz every day.", []),
        ("My new dentist is Dr. Reed.", ["Dentist is Dr. Reed"]),
        ("It turned out I'm not allergic to nuts.", ["Is not allergic to nuts"]),
        ("I don't play the tuba any more, I play drums now.", ["Plays drums", "No longer plays the tuba"]),
    ],
)
async def test_a_statement_beside_a_question_or_a_companion(text: str, contents: list[str]) -> None:
    assert [told["content"] for told in await answer(f"user: {text}")] == contents


async def test_a_name_put_right_takes_the_name_alone() -> None:
    known = (("user", "Has a sister named Rita"),)
    (told,) = await answer("user: Sorry, her name is Ruth, not Rita.", known=known)
    assert (told["content"], told["replaces"], told["is_correction"]) == ("Has a sister named Ruth", "w1", True)


async def test_a_known_person_is_understood_by_first_name() -> None:
    known = (("anna", "Lives in Rome"), ("user", "Lives in Bonn"))
    assert brief(await answer("user: Anna moved to Oslo.", known=known)) == [("anna", "Lives in Oslo", "w1", False)]
    assert await answer("user: Anna likes Oslo.", known=known) != []
    assert await answer("user: Berta likes Oslo.", known=known) == []


async def test_several_turns_name_their_turn_and_each_other() -> None:
    said = await answer(
        "user: I work at Acme.", "user: Hello!", "user: I joined Initech.", known=(("user", "Works at Hooli"),)
    )
    assert [(item["turn"], item["content"], item["replaces"]) for item in said] == [
        ("t1", "Works at Acme", "w1"),
        ("t3", "Works at Initech", "o1"),
    ]


async def test_every_statement_of_a_turn_is_an_observation() -> None:
    said = await answer("user: I'm Ana. I work at Acme. I live in Rome. I love tea. I have a cat named Tom.")
    assert len(said) == 5


@pytest.mark.parametrize(
    "text",
    [
        "I live on the moon. Just kidding!",
        "Imagine the following. I am a lawyer. I live in Boston.",
        "Please translate this for me. I live in Boston.",
        'She wrote: "I live in Boston."',
        "If I work at Acme, do I get a discount?",
        "I would work at Acme.",
        "I joined the call late.",
        "I moved to the next step.",
        "I play devil's advocate.",
        "I'm OK.",
        "I have two options.",
        "I worked at Acme until 2010.",
        "I had a dog named Toby.",
        "According to Tom, I live in Boston.",
        "My sister told me, I work at Acme.",
        "I work at Acme next week.",
        "I play tennis tomorrow.",
    ],
)
async def test_silence(text: str) -> None:
    assert await answer(f"user: {text}") == []


@pytest.mark.parametrize(
    ("earlier", "said", "contents"),
    [
        (("Let's do some role play. I am a pirate.",), "I live on a ship and I have a parrot named Jim.", []),
        (("Help me write a story.",), "I moved to Oslo and I became a baker.", []),
        (("You be the interviewer and I am the applicant.",), "I work at Acme.", []),
        (("Let's practice a job interview.",), "OK stop here. I work at Acme.", ["Works at Acme"]),
        (("Write me a song about rain.",), "Back to reality: I live in Oslo.", ["Lives in Oslo"]),
        (('Translate "I am a baker".',), "And now this: I live in Oslo.", []),
        ((), "In the film the guy goes: I am no hero. I drive a taxi.", []),
        ((), "My uncle keeps telling everyone I am a lawyer.", []),
        ((), "I have asthma and the pollen kills me.", ["Has asthma"]),
        ((), "I live in the Netherlands so I cycle.", ["Lives in the Netherlands"]),
        ((), "I live in a van now, a red one.", ["Lives in a van"]),
        ((), "I sell old clocks.", ["Sells old clocks"]),
        ((), "I fix bugs all day.", []),
        ((), "I'm Tove, I live in Oslo.", ["Name is Tove", "Lives in Oslo"]),
    ],
)
async def test_only_the_speakers_own_words_teach(earlier: tuple[str, ...], said: str, contents: list[str]) -> None:
    assert [told["content"] for told in await answer(f"user: {said}", context=earlier)] == contents


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("I used to smoke but I quit.", ["Does not smoke"]),
        ("I used to play the violin but I stopped.", ["No longer plays the violin"]),
        ("My boss is awful and my job too, so I quit.", ["Quit their job"]),
        ("I was reading your story but I quit.", []),
    ],
)
async def test_a_bare_end_takes_its_object_from_the_clauses_before(text: str, contents: list[str]) -> None:
    assert [told["content"] for told in await answer(f"user: {text}")] == contents


@pytest.mark.parametrize(
    ("earlier", "text", "reason"),
    [
        ((), "Is Oslo expensive?", Silence.QUESTION),
        ((), "If I move to Oslo, I need a coat.", Silence.QUESTION),
        ((), '"I live in Oslo."', Silence.QUOTED),
        ((), "Translate this for me. I live in Oslo.", Silence.QUOTED),
        ((), "My sister says I live in a bubble.", Silence.REPORTED),
        ((), "Maybe I will move to Oslo.", Silence.UNCERTAIN),
        ((), "Let's play pretend. I am a knight.", Silence.MADE_UP),
        (("Let's play pretend. I am a knight.",), "I have a horse.", Silence.MADE_UP),
        ((), "The tram was late again.", Silence.UNKNOWN),
    ],
)
def test_why_a_message_teaches_nothing(earlier: tuple[str, ...], text: str, reason: Silence) -> None:
    assert why_silent(text, earlier) is reason
    assert len(reason.value.split()) <= 3


# ------------------------------------------------------------------------------------------------ whatever is said
WORDS = (
    "I am my name is work at live in Acme Rome not no longer , . ! ? and but sorry actually it's Anna sister",
    "a dog named have love 'm [w1] user: … 🙂 since for years two joined moved to the",
)
TALK = st.lists(st.sampled_from([*" ".join(WORDS).split(), "\n"]), max_size=40).map(" ".join)


@given(TALK | st.text(max_size=300))
async def test_evidence_is_always_a_quote_and_ids_are_shown_ones(text: str) -> None:
    folded = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    for item in await answer(f"user: {text}", known=(("user", "Works at Acme"), ("anna", "Lives in Rome"))):
        quote = " ".join(unicodedata.normalize("NFC", str(item["evidence"])).casefold().split())
        assert quote in folded
        assert len(str(item["evidence"])) <= 500
        assert item["replaces"] in (None, "w1", "w2", "o1", "o2")


def test_both_readers_of_prompts_agree() -> None:
    request = observe("user: a\n  \\[w9] b", "user: c", known=(("user", "Works at Acme"), ("anna", "Lives in Rome")))
    prompt = read_prompt(request.messages)
    seen = view([(message.role, message.content) for message in request.messages])
    assert {item.id: (item.subject, item.content) for item in prompt.working} == {
        shown.id: (shown.subject, shown.content) for shown in seen.working.values()
    }
    assert [turn.id for turn in prompt.turns] == list(seen.turns)
    assert seen.turns["t1"] == "user: a\n  [w9] b"


async def test_long_texts_are_read_in_no_time() -> None:
    """A pasted document must not hold up a worker. The patterns run in linear time, and the length that is read is
    limited."""
    started = time.process_time()
    for text in (
        "I live in Rome, and I " * 20_000,
        "my " * 100_000,
        "not, " * 60_000,
        "I am a " * 60_000 + ".",
        "[" * 200_000,
    ):
        await answer(f"user: {text}")
        await answer("user: " + "\n".join(text[at : at + 390] for at in range(0, 65_000, 391)))
    assert time.process_time() - started < 10


async def test_the_log_says_how_much_was_left_unread_at_most_every_ten_minutes() -> None:
    now = 0.0
    model = OfflineCompletions(sink=Ledger(), clock=lambda: now)
    with structlog.testing.capture_logs() as told:
        await model.complete(observe("user: I live in Rome. The weather is odd today. What is that?"))
        assert told == []
        now = 600.0
        await model.complete(observe("user: I work at Acme."))
        await model.complete(observe("user: Nothing to say here."))
        await model.close()
        await model.close()
    assert [(each["event"], each["read"], each["statements"]) for each in told] == [
        ("offline_model_read", 2, 3),
        ("offline_model_read", 0, 1),
    ]
    assert not any("Rome" in str(each) or "weather" in str(each) for each in told)


async def test_an_item_of_a_list_is_quoted_with_the_words_that_introduce_it() -> None:
    told = await answer("user: I speak:\n- Urdu (native)\n- English")
    assert [(each["content"], each["evidence"]) for each in told] == [
        ("Speaks Urdu", "I speak: - Urdu (native)"),
        ("Speaks English", "I speak: - Urdu (native) - English"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        'found this: "I have no time. I use my Kindle daily. I live in Rome!"',
        "another one: 'I am from Oslo. I have two dogs and I don't eat fish.'",
    ],
)
async def test_quotations_of_several_sentences_are_nobodys_own_words(text: str) -> None:
    assert await answer(f"user: {text}") == []
