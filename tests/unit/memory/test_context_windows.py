"""Context windows: which neighbours stand in a message's window, and that no window reveals a neighbour."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstream.memory.recall.context_windows import (
    LONG,
    NEIGHBOUR_MAX,
    NEIGHBOURS,
    ContextWindow,
    WindowMessage,
    build_windows,
    is_talk,
)

LEVELS = ("public", "internal", "secret")
LINES = st.lists(
    st.builds(
        WindowMessage,
        text=st.text("abc", min_size=1, max_size=5),
        owner_key=st.sampled_from(["u1", "u2"]),
        sensitivity=st.sampled_from(LEVELS),
    ),
    max_size=8,
)


def lines(*texts: str) -> list[WindowMessage]:
    return [WindowMessage(text, "u1", "internal") for text in texts]


def test_a_window_is_previous_this_and_next() -> None:
    found = build_windows(lines("a", "b"), lines("c", "d"))
    assert found.turn == (ContextWindow("b\nc\nd", nearby="b\nd"), ContextWindow("c\nd", nearby="c"))
    assert found.before == ContextWindow("a\nb\nc", nearby="a\nc")


@pytest.mark.parametrize(
    ("before", "turn", "expected"),
    [
        ((), (), ((), None)),
        ((), ("a",), (("a",), None)),
        (("a",), (), ((), None)),
        (("a",), ("b",), (("a\nb",), "a\nb")),
    ],
)
def test_at_the_ends_there_is_less(
    before: tuple[str, ...], turn: tuple[str, ...], expected: tuple[tuple[str, ...], str | None]
) -> None:
    found = build_windows(lines(*before), lines(*turn))
    before_text = None if found.before is None else found.before.text
    assert (tuple(each.text for each in found.turn), before_text) == expected


def test_of_a_long_neighbour_the_part_beside_the_message_stands() -> None:
    long = "x" * NEIGHBOUR_MAX
    found = build_windows(lines(f"far{long}"), lines("this", f"{long}far"))
    assert found.turn[0] == ContextWindow(f"{long}\nthis\n{long}", nearby=f"{long}\n{long}")
    assert found.turn[1].text == f"this\n{long}far", "a message itself is never cut"


@pytest.mark.parametrize(("length", "alone"), [(LONG, False), (LONG + 1, True)])
def test_the_window_of_a_long_message_is_the_message_alone(length: int, alone: bool) -> None:
    found = build_windows(lines("before"), lines("x" * length, "after"))
    assert (found.turn[0] == ContextWindow("x" * length, nearby="")) is alone
    assert found.turn[1].nearby == "x" * NEIGHBOUR_MAX, "it is still a neighbour of others"


@pytest.mark.parametrize(
    ("role", "text", "talk"),
    [
        ("user", "hi", True),
        ("assistant", "hi", True),
        ("tool", "hi", False),
        ("system", "hi", False),
        ("user", " ", False),
    ],
)
def test_only_what_is_said_is_talk(role: str, text: str, talk: bool) -> None:
    assert is_talk(role, text) is talk


@given(LINES, LINES)
def test_a_neighbour_is_told_to_nobody_who_may_not_read_it(
    before: list[WindowMessage], turn: list[WindowMessage]
) -> None:
    """Each text stands in its own window, and in another's only under the same owner and no higher ceiling."""
    marked = [
        WindowMessage(f"<{place}>", each.owner_key, each.sensitivity) for place, each in enumerate([*before, *turn])
    ]
    found = build_windows(marked[: len(before)], marked[len(before) :])
    for place, text in enumerate(found.turn, start=len(before)):
        this = marked[place]
        expected = [
            each.text
            for at, each in enumerate(marked)
            if at == place
            or (
                abs(at - place) == 1
                and each.owner_key == this.owner_key
                and LEVELS.index(each.sensitivity) <= LEVELS.index(this.sensitivity)
            )
        ]
        assert text.text.split("\n") == expected
        assert [each for each in text.nearby.split("\n") if each] == [each for each in expected if each != this.text]


@given(LINES, st.data())
def test_turn_by_turn_leaves_what_the_whole_session_at_once_would(
    session: list[WindowMessage], data: st.DataObject
) -> None:
    """However the lines of a session are cut into turns: the last window written of each is the same."""
    written: list[ContextWindow] = []
    place = 0
    while place < len(session):
        size = data.draw(st.integers(1, 3))
        turn = session[place : place + size]
        found = build_windows(session[max(0, place - NEIGHBOURS) : place], turn)
        if found.before is not None:
            written[place - 1] = found.before
        written += found.turn
        place += len(turn)
    assert tuple(written) == build_windows([], session).turn
