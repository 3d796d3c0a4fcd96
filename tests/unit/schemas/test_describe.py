"""What logs and dead letters say of an error."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from memstream.schemas.base import describe
from memstream.streams.engine.dead_letters import message_of


class Strict(BaseModel):
    n: int


def test_the_refused_input_stands_in_no_description() -> None:
    with pytest.raises(ValidationError) as caught:
        Strict.model_validate({"n": "my canary"})
    assert "my canary" in str(caught.value), "as pydantic says it"
    assert describe(caught.value).startswith("ValidationError: n: ")
    assert "my canary" not in describe(caught.value) + message_of(caught.value)
    with pytest.raises(UnicodeEncodeError) as encoded:
        "my canary \udc00".encode()
    assert "my canary" in repr(encoded.value)
    assert "my canary" not in describe(encoded.value)


def test_another_error_keeps_its_words() -> None:
    assert describe(RuntimeError("out of room")) == "RuntimeError: out of room"
    assert message_of(KeyError("x")) == "'x'"
