"""Events of the user's life by which a cue names a time, in English and German."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memstream.memory.language.locales import locales
from memstream.memory.policies import MemoryPolicy
from memstream.memory.recall.cue_times import CueTime, related_time
from memstream.memory.recall.event_times import DatedFact, EventClause, moment_of_event, read_event_clause

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
BEGIN, END = datetime(2024, 6, 1, 9, 0, tzinfo=UTC), datetime(2025, 3, 31, 9, 0, tzinfo=UTC)
PACKS = (*locales("en"), *locales("de"))


def fact(content: str, slot: str = "other", **fields: object) -> DatedFact:
    """Return a fact with a stated begin."""
    known: dict[str, object] = {"category": "attribute", "begin": BEGIN, "begin_told": True, "end": None}
    return DatedFact(content, slot, **(known | {"follows": False} | fields))  # type: ignore[arg-type]


def read(cue: str) -> EventClause:
    clause = read_event_clause(cue, PACKS)
    assert clause is not None
    return clause


def moment(cue: str, *facts: DatedFact) -> datetime | None:
    return moment_of_event(read(cue), facts, now=NOW)


@pytest.mark.parametrize(
    ("cue", "relation", "words"),
    [
        ("What did I cook before I moved?", "before", "moved"),
        ("Since I moved what did I cook?", "since", "moved"),
        ("After I graduated did I read more?", "after", "graduated"),
        ("What did I eat since I'm married?", "since", "married"),
        ("before my son was born", "before", "son born"),
        ("since my wedding what do I cook", "since", "wedding"),
        ("what did I cook after my wedding with Ben on Sundays", "after", "wedding"),
        ("before my first trip to Japan with Ben", "before", "trip japan"),
        ("until we got the dog last year", "until", "dog"),
        ("after the move", "after", "move"),
        ("after the birth of my daughter what did I read", "after", "birth daughter"),
        ("After moving to Porto what did I cook?", "after", "moving porto"),
        ("bevor ich umgezogen bin", "before", "umgezogen"),
        ("bevor mein Hund gestorben ist", "before", "hund gestorben"),
        ("Was habe ich bis zu meinem Umzug nach Porto gekocht?", "until", "umzug porto"),
        ("Was habe ich seit dem Umzug gekocht?", "since", "umzug"),
        ("Was mache ich seit unserer Hochzeit sonntags?", "since", "hochzeit"),
        ("Seit meiner Hochzeit habe ich was gelesen?", "since", "hochzeit"),
        ("was habe ich vor meinem umzug gekocht", "before", "umzug"),
        ("vor meiner ersten großen Reise nach Japan", "before", "reise japan"),
        ("nach der Geburt meiner Tochter", "after", "geburt tochter"),
        ("nach Ende meines Studiums", "after", "ende studiums"),
        ("Was lese ich seit meinem Jobwechsel?", "since", "job wechsel"),
    ],
)
def test_the_words_of_an_event(cue: str, relation: str, words: str) -> None:
    clause = read(cue)
    assert (clause.relation, " ".join(clause.words)) == (relation, words)


@pytest.mark.parametrize(
    "cue",
    [
        "",
        "before",
        "Did I call before?",
        "What did I cook after she moved?",
        "after the meeting with my boss",
        "before work",
        "after I finished",
        "until the end of last year",
        "seit drei Wochen",
        "bevor er geheiratet hat",
        "nach der Arbeit",
        "bis Ende März",
        "Was habe ich vor mir?",
    ],
)
def test_no_event_of_the_user(cue: str) -> None:
    assert read_event_clause(cue, PACKS) is None


def test_only_the_given_packs_are_read() -> None:
    assert read_event_clause("bevor ich umgezogen bin", locales("en")) is None


@pytest.mark.parametrize(
    ("cue", "stated"),
    [
        ("before I moved", fact("Lives in Porto", "residence")),
        ("before I moved to Porto", fact("Lives in Porto", "residence", begin_told=False)),
        ("before my knee surgery", fact("Had knee surgery", "event")),
        ("before we adopted Bolt", fact("Has a dog named Bolt", "pet", begin_told=False)),
        ("before I got the dog", fact("Has a dog named Bolt", "pet", begin_told=False)),
        ("before I finished school", fact("Graduated from evening school", "education")),
        ("before our wedding", fact("Got married to Noa")),
        ("since my new job", fact("Works at a bakery", "employer", begin_told=False)),
        ("vor meiner Knieoperation", fact("Hatte eine Operation am Knie", "event")),
        ("nach meinem Schulabschluss", fact("Hat die Abendschule abgeschlossen")),
        ("seit meinem Jobwechsel", fact("Arbeitet in einer Bäckerei", "employer")),
        ("ehe ich mit der Abendschule fertig war", fact("Hat die Abendschule abgeschlossen")),
        ("bevor wir Bolt adoptiert haben", fact("Hat einen Hund namens Bolt", "pet", begin_told=False)),
    ],
)
def test_a_fact_states_the_begin(cue: str, stated: DatedFact) -> None:
    assert moment(cue, stated) == BEGIN
    assert moment(cue, replace(stated, denied=True)) is None
    assert moment(cue, replace(stated, category="goal")) is None
    assert moment(cue, replace(stated, begin=NOW + timedelta(days=1))) is None


@pytest.mark.parametrize(
    ("cue", "stated"),
    [
        ("before I left Siemens", fact("Works at Siemens", "employer", end=END)),
        ("nachdem ich bei Siemens gekündigt habe", fact("Arbeitet bei Siemens", "employer", end=END)),
        ("bis zum Ende meines Studiums", fact("Macht ein Studium der Physik", "education", end=END)),
    ],
)
def test_an_ended_fact_states_the_end(cue: str, stated: DatedFact) -> None:
    assert moment(cue, stated) == END
    assert moment(cue, replace(stated, end=None)) is None


@pytest.mark.parametrize(
    ("cue", "other"),
    [
        ("before I moved to Rome", fact("Lives in Porto", "residence")),
        ("before I moved", fact("Lives in Porto", "residence", begin_told=False)),
        ("before I moved", fact("Works at Siemens", "employer")),
        ("after my dad got sick", fact("Has a dad named Tom", "parent")),
        ("before I finished school", fact("Likes school", "likes")),
        ("before we finished moving", fact("Lives in Porto", "residence", begin_told=False, end=END)),
        ("vor meiner Knieoperation", fact("Hatte eine Operation an der Hand", "event")),
        ("bevor mein Hund gestorben ist", fact("Hat einen Hund namens Bolt", "pet")),
        ("nach meinem Auftritt als Pianist", fact("Arbeitet als Koch", "job")),
    ],
)
def test_other_facts_state_no_event(cue: str, other: DatedFact) -> None:
    assert moment(cue, other) is None


def test_the_fact_with_most_words_then_a_stated_begin_then_the_newest_counts() -> None:
    first = fact("Lives in Lyon", "residence", begin=BEGIN - timedelta(days=700))
    second = fact("Lives in Porto", "residence")
    assumed = fact("Moved again", "residence", begin=NOW, begin_told=False)
    assert moment("before I moved to Lyon", second, first) == first.begin
    assert moment("before I moved", first, second, assumed) == BEGIN
    assert moment("before I moved", fact("Lives in Porto", "residence", begin_told=False, follows=True)) == BEGIN


def test_a_compound_noun_is_searched_with_its_parts() -> None:
    assert {"knieoperation", "knie", "operation"} <= {*read("vor meiner Knieoperation").text.split()}
    assert read("before my knee surgery").text == "knee surgery"


def test_the_slots_of_the_words_exist() -> None:
    named = {slot for pack in PACKS for each in pack.event_words.words.values() for slot in each.slots}
    assert named <= {*MemoryPolicy().slots}


def test_the_time_of_a_relation() -> None:
    day, after, tomorrow = (
        datetime(2024, 6, 1, tzinfo=UTC),
        datetime(2024, 6, 2, tzinfo=UTC),
        NOW.replace(day=21, hour=0),
    )
    assert related_time(BEGIN, "before", now=NOW) == CueTime(None, day)
    assert related_time(BEGIN, "until", now=NOW) == CueTime(None, after)
    assert related_time(BEGIN, "since", now=NOW) == CueTime(day, tomorrow)
    assert related_time(BEGIN, "after", now=NOW) == CueTime(after, tomorrow)
    assert related_time(NOW, "after", now=NOW) is None
    assert related_time(datetime(9999, 12, 31, tzinfo=UTC), "after", now=NOW) is None


def test_a_long_cue_takes_linear_time() -> None:
    def seconds(cue: str) -> float:
        begun = time.process_time()
        read_event_clause(cue, PACKS)
        return time.process_time() - begun

    for part in ("before ", "before I ", "after my ", "seit dem ", "vor meinem Neuen "):
        assert seconds(part * 4_000) < 8 * max(0.02, min(seconds(part * 1_000) for _ in range(3)))
