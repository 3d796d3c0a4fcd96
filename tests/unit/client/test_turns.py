"""What a client sends of a turn: secrets are masked before they leave, and the rest stays as it was given."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiokafka.errors import InvalidTimestampError, KafkaTimeoutError, TopicAuthorizationFailedError

from memstream.client.errors import Misconfigured, Unavailable, translate_errors
from memstream.client.turns import Privacy, encode_turn
from memstream.memory.policies import PrivacyPolicy
from memstream.schemas.errors import Poison
from memstream.schemas.turns import TURN_MAX_BYTES, Turn
from memstream.streams.log.write_errors import write_error

Json = dict[str, Any]


def turn(content: str, **further: object) -> Json:
    return {
        "tenant_id": "acme",
        "user_id": "u1",
        "session_id": "s1",
        "turn_id": "t1",
        "messages": [{"role": "user", "content": content}],
        **further,
    }


def sent(given: Json | Turn, privacy: Privacy = "default") -> Json:
    read: Json = json.loads(encode_turn(given, privacy)[1])
    return read


@pytest.mark.parametrize("as_model", [False, True])
def test_a_secret_is_masked_before_it_is_sent(as_model: bool) -> None:
    given = turn("My password is hunter2, and I prefer tea.", metadata={"note": "pin: 4711"}, channel="web")
    value = sent(Turn.model_validate(given) if as_model else given)
    assert value["messages"][0]["content"] == "My password is [password], and I prefer tea."
    assert value["metadata"] == {"note": "pin: [pin]"}
    assert (value["channel"], value["turn_id"]) == ("web", "t1")


def test_a_turn_without_a_secret_is_sent_byte_for_byte() -> None:
    given = turn("Zoë lives in “Porto”, mail ana@example.com.", metadata={"z": 1, "a": [1.50]})
    assert encode_turn(given)[1] == encode_turn(given, "off")[1]


def test_a_masked_turn_may_be_sent_again() -> None:
    given = turn("My password is hunter2.")
    first = encode_turn(given)[1]
    assert encode_turn(given)[1] == first
    assert encode_turn(json.loads(first))[1] == first


def test_a_client_may_send_turns_as_they_are() -> None:
    assert sent(turn("My password is hunter2."), "off")["messages"][0]["content"] == "My password is hunter2."


def test_a_client_may_have_a_policy_of_its_own() -> None:
    policy = PrivacyPolicy(password="allow", email="mask")
    content = sent(turn("My password is hunter2, mail ana@example.com."), policy)["messages"][0]["content"]
    assert content == "My password is hunter2, mail [email]."


def test_a_turn_that_masking_makes_too_large_is_refused() -> None:
    pins = "pin 123\n" * (TURN_MAX_BYTES // 10)
    given = turn(pins + "x" * (TURN_MAX_BYTES - len(encode_turn(turn(pins), "off")[1]) - 10))
    encode_turn(given, "off")
    with pytest.raises(Poison, match="262144"):
        encode_turn(given)


@pytest.mark.parametrize(
    ("refusal", "kind", "named"),
    [
        (KafkaTimeoutError(), Unavailable, "did not arrive"),
        (TopicAuthorizationFailedError(), Misconfigured, "may not write to memory.turns.*operation Write"),
        (InvalidTimestampError(), Misconfigured, "time of this machine.*clock"),
    ],
)
def test_a_refusal_of_the_broker_names_its_cause(refusal: Exception, kind: type[Exception], named: str) -> None:
    with pytest.raises(kind, match=named), translate_errors():
        raise write_error("memory.turns", refusal)
