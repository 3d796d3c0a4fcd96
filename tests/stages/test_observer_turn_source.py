"""An operator's own function in place of a turn's messages: what is shown, whose words they are, what is refused."""

from __future__ import annotations

import pytest

from memstream.agents.observer.batch import source_role
from memstream.agents.observer.prompt import ShownTurn
from memstream.agents.observer.speakers import ShownMessage
from memstream.agents.observer.turn_source import load_source
from memstream.memory.policies import CapturePolicy
from memstream.memory.recall.prompt_framing import frame
from memstream.schemas.errors import Fatal
from memstream.schemas.turns import Turn
from tests.support.record_builders import NOW

HERE = __name__
NOT_A_FUNCTION = 3


def users_words(turn: Turn) -> str | None:
    """The user's words alone, and a summary that a program wrote."""
    said = [message.text for message in turn.messages if message.role == "user"]
    return None if not said else f"{' '.join(said)} Summary: moves house."


def wrong(turn: Turn) -> object:
    return 7


def turn(*messages: tuple[str, str]) -> Turn:
    said = [{"role": role, "content": text} for role, text in messages]
    return Turn.model_validate(
        {"tenant_id": "acme", "user_id": "u1", "session_id": "s1", "turn_id": "t1", "messages": said}
    )


def shown(given: Turn) -> ShownTurn:
    return ShownTurn.of(given, NOW, CapturePolicy(), load_source(f"{HERE}:users_words"))


def test_its_text_is_shown_and_nothing_else() -> None:
    made = shown(turn(("user", "I live in Rome."), ("assistant", "Lovely.")))
    assert made.said == (ShownMessage("user", "I live in Rome. Summary: moves house."),)
    assert made.tokens == 10


def test_none_shows_nothing() -> None:
    assert shown(turn(("assistant", "Hello."))).said == ()


def test_words_are_whose_they_were_and_a_programs_are_a_tools() -> None:
    made = shown(turn(("user", "I live in Rome."), ("assistant", "Lovely.")))
    assert source_role(made, "I live in Rome") == "user"
    assert source_role(made, "moves house") == "tool"
    assert source_role(made, "Lovely") is None, "it was not shown"


def test_what_was_recalled_is_taken_out_of_it() -> None:
    rendered = frame("Works at Google", mark="0123456789abcdef")
    [message] = shown(turn(("user", f"{rendered} I live in Rome."))).said
    text = message.text
    assert "Google" not in text
    assert "I live in Rome." in text


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no.such.module:f", "No module named"),
        (f"{HERE}:nobody", "has no nobody"),
        (f"{HERE}:NOT_A_FUNCTION", "it is no function"),
    ],
)
def test_one_that_does_not_exist_is_refused_by_name(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        load_source(name)
    assert name in str(caught.value)


@pytest.mark.parametrize("name", ["module", "module:", ":function", "a b:c", "a.b:c.d()"])
def test_a_name_of_another_shape_is_refused_by_the_policy(name: str) -> None:
    with pytest.raises(ValueError, match=r"package\.module:function"):
        CapturePolicy(source=name)


def test_an_answer_that_is_no_text_stops_the_worker() -> None:
    with pytest.raises(Fatal, match="answered int"):
        ShownTurn.of(turn(("user", "Hi.")), NOW, CapturePolicy(), load_source(f"{HERE}:wrong"))
