"""The speaker whom a question names: found among the speakers, rewritten in the first person, none where nobody has a
name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.recall.speakers import ROLES, find_speaker, possible_names, remove_name, to_first_person

CUES = st.lists(
    st.sampled_from(
        (
            "What",
            "did",
            "Ann's",
            "Bob",
            "Anna",
            "Will",
            "say",
            "to",
            "of",
            "plans",
            "I",
            "user",
            "Assistant",
            "TOOL",
            ".",
        )
    ),
    max_size=12,
).map(" ".join)


@pytest.mark.parametrize(
    ("cue", "names"),
    [
        ("What are Ann's plans?", ("Ann", "ann")),
        ("Did Ann move to Oslo", ("Ann", "ann", "Oslo", "oslo")),
        ("What did Anna Schmidt say?", ("Anna", "anna", "Schmidt", "schmidt", "Anna Schmidt", "anna schmidt")),
        ("Ann, Bob", ("Ann", "ann", "Bob", "bob")),
        ("Will it rain?", ()),
        ("Where is Will?", ("Will", "will")),
        ("what are my plans", ()),
        ("Does the User or the Assistant know what I said?", ()),
        ("", ()),
        ("  ?!  ", ()),
        ("James\u2019 plans, Ann\u2019s cat", ("James", "james", "Ann", "ann")),
        ("Jean-Luc and O.J. met", ("Jean-Luc", "jean-luc", "O.J", "o.j")),
    ],
)
def test_names_are_words_with_a_capital(cue: str, names: tuple[str, ...]) -> None:
    assert possible_names(cue) == names


@pytest.mark.parametrize(
    ("cue", "first_person", "without_name"),
    [
        ("What are Ann's plans?", "What are my plans?", "What are plans?"),
        ("What did Ann say?", "What did I say?", "What did say?"),
        ("Who went to Oslo with Ann?", "Who went to Oslo with me?", "Who went to Oslo with ?"),
        ("Ann and ann\u2019s cat", "I and my cat", "and cat"),
        ("Anna's, not Ann's", "Anna's, not my", "Anna's, not"),
    ],
)
def test_the_question_as_the_speaker_would_put_it(cue: str, first_person: str, without_name: str) -> None:
    assert to_first_person(cue, "Ann") == first_person
    assert remove_name(cue, "Ann") == without_name
    found = find_speaker(cue, ["Ann"])
    assert found is not None
    assert (found.first_person, found.without_name, found.names) == (first_person, without_name, frozenset({"Ann"}))


def test_a_cue_of_a_name_alone_keeps_it_for_the_words() -> None:
    assert remove_name("Who is Ann?", "Ann") == "Who is Ann?"
    assert remove_name("Ann", "Ann") == "Ann"


@pytest.mark.parametrize(
    ("cue", "known", "names"),
    [
        ("What does Ann like?", ["Ann", "Bob"], {"Ann"}),
        ("What do Ann and Bob like?", ["Ann", "Bob"], None),
        ("What do Ann and Paris like?", ["Ann", "Bob"], {"Ann"}),
        ("What does Ann like?", ["ann", "Ann"], {"ann", "Ann"}),
        ("What does Ann like?", ["Anna"], None),
        ("What does Anna Schmidt like?", ["Anna Schmidt"], {"Anna Schmidt"}),
        ("What do I like?", ["Ann"], None),
        ("What does ann like?", ["Ann"], None),
    ],
)
def test_only_one_who_speaks_is_preferred(cue: str, known: list[str], names: set[str] | None) -> None:
    found = find_speaker(cue, known)
    assert (None if found is None else set(found.names)) == names


@given(CUES)
def test_a_role_is_nobody(cue: str) -> None:
    assert find_speaker(cue, ROLES) is None
    assert not ROLES & {name.lower() for name in possible_names(cue)}


@given(CUES)
def test_where_nobody_has_a_name_nobody_is_named(cue: str) -> None:
    assert find_speaker(cue, []) is None


@given(CUES, st.lists(st.sampled_from(["Ann", "Bob", "Anna", "Will", "Paris", "ann"]), unique=True))
def test_who_is_named_is_known_and_gone_from_the_question(cue: str, known: list[str]) -> None:
    found = find_speaker(cue, known)
    if found is None:
        return
    assert found.names <= set(known)
    assert len({name.casefold() for name in found.names}) == 1
    gone = {name.lower() for name in possible_names(found.first_person)}
    assert gone.isdisjoint({name.lower() for name in found.names})
    assert found.without_name.strip()


@given(st.text(max_size=60), st.text(min_size=1, max_size=10))
def test_any_text_is_taken(cue: str, name: str) -> None:
    possible_names(cue)
    find_speaker(cue, [name])
    to_first_person(cue, name)
    assert remove_name(cue, name) is not None
