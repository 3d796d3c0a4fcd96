"""Secrets that reach over the end of a part or of a message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from memstream.memory.policies import PrivacyPolicy
from memstream.memory.secrets.across import LOOK_AHEAD, LOOK_BACK, across_messages
from memstream.memory.secrets.findings import Finding
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.memory.secrets.turns import protect_turn
from memstream.schemas.turns import Turn, TurnMessage

KEY = "AKIA" + "Q3EGFAKE7XAMPLE2"
CARD = "4111 1111 1111 1111"


def protected(*messages: dict[str, Any], policy: PrivacyPolicy | None = None) -> list[str]:
    fields = {"tenant_id": "acme", "user_id": "u1", "session_id": "s1", "turn_id": "t1", "messages": messages}
    secrets = SecretFilter(policy or PrivacyPolicy())
    once = protect_turn(Turn.model_validate(fields), secrets)
    again = protect_turn(Turn.read(once.turn.to_bytes()), secrets)
    assert not again.changed, "protecting twice is protecting once"
    return [message.text for message in once.turn.messages]


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


def parts(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


# ------------------------------------------------------------------------------------------------ parts
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (("my password is hun", "ter2x, ok?"), "my password is [password], ok?"),
        (("the key ", KEY[:9], KEY[9:], " works"), "the key \n[api_key]\n works"),
        (("my pass", "word is hunter2x"), "my pass\nword is [password]"),
        (("my card:", CARD), "my card:\n[card]"),
        (("I like tea", "and 9 cats"), "I like tea\nand 9 cats"),
        (("I have a password", "4 you asked"), "I have a password\n4 you asked"),
    ],
)
def test_parts_are_read_without_the_line_ends_between_them(given: tuple[str, ...], kept: str) -> None:
    assert protected(parts(*given)) == [kept]


# ------------------------------------------------------------------------------------------------ messages
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (("my password is", "hunter2x"), ["my password is", "[password]"]),
        (("The PIN of my card:", "4711"), ["The PIN of my card:", "[pin]"]),
        (("la mia password è", "Gatto!99"), ["la mia password è", "[password]"]),
        (("я забыл, пароль:", "Kot!99xx"), ["я забыл, пароль:", "[password]"]),
        ((f"the key is {KEY[:9]}", f"{KEY[9:]} now"), ["the key is [api_key]", "[api_key] now"]),
        (("pay with 4111 1111", "1111 1111 please"), ["pay with [card]", "[card] please"]),
        (("password", ":", "hunter2x"), ["password", ":", "[password]"]),
        (("my password is ok", "4 you I do all"), ["my password is ok", "4 you I do all"]),
        (("I like tea.", "And 4711 cats."), ["I like tea.", "And 4711 cats."]),
        (("What is my password?", "I forgot it."), ["What is my password?", "I forgot it."]),
    ],
)
def test_a_secret_reaches_into_the_next_message_of_its_speaker(given: tuple[str, ...], kept: list[str]) -> None:
    assert protected(*said(*given)) == kept


def test_another_speaker_between_them_changes_nothing() -> None:
    first, second = said("my password is", "hunter2x")
    answer = {"role": "assistant", "content": "Which one?"}
    assert protected(first, answer, second) == ["my password is", "Which one?", "[password]"]


def test_what_another_speaker_says_is_no_value() -> None:
    first, _ = said("my password is", "")
    assert protected(first, {"role": "assistant", "content": "Ubuntu22"}) == ["my password is", "Ubuntu22"]
    assert protected({**first, "name": "ana"}, {**said("Ubuntu22")[0], "name": "ben"}) == ["my password is", "Ubuntu22"]


class Lengths:
    """A detector that keeps the lengths of the texts that it reads."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def find(self, text: str) -> Sequence[Finding]:
        self.read.append(len(text))
        return ()


def test_the_look_across_is_bounded() -> None:
    detector = Lengths()
    messages = [TurnMessage(role="user", content=text) for text in ("so " * 5_000, "so", "no " * 5_000, "x" * 9_000)]
    across_messages(messages, SecretFilter(detectors=(detector,)))
    assert len(detector.read) == 6
    assert max(detector.read) <= LOOK_BACK + LOOK_AHEAD + 2


def test_places_behind_the_bound_lead_to_their_own_text() -> None:
    text = "tea is fine. " * 40 + "my password is"
    assert protected(*said(text, "hunter2x")) == [text, "[password]"]
    long = "tea is fine. " * 40 + f"the key is {KEY[:9]}"
    assert protected(*said(long, KEY[9:])) == ["tea is fine. " * 40 + "the key is [api_key]", "[api_key]"]


def test_what_the_policy_allows_stays() -> None:
    assert protected(*said("my password is", "hunter2x"), policy=PrivacyPolicy(password="allow"))[1] == "hunter2x"
    assert protected(*said("my password is", "hunter2x"), policy=PrivacyPolicy(password="drop"))[1] == ""
