"""What logs and dead letters say of an error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import BaseModel, ValidationError

from memstream.agents.observer.answer_schema import ObservationItem
from memstream.agents.observer.rows import SessionRow
from memstream.schemas.base import describe
from memstream.schemas.observations import Observed
from memstream.schemas.outcomes import Outcome
from memstream.schemas.turns import Turn
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


@pytest.mark.parametrize(
    "read",
    [
        lambda: Observed.read(b'{"tenant_id": ["my canary"]}'),
        lambda: Turn.read(b'{"messages": [{"role": "user", "content": {"x": "my canary"}}]}'),
        lambda: SessionRow.model_validate_json(b'{"recent": [{"role": "user", "text": ["my canary"]}]}'),
        lambda: ObservationItem.model_validate({"content": ["my canary"]}),
        lambda: Outcome.model_validate({"source": "my canary"}),
    ],
)
def test_what_we_read_and_write_stands_in_no_error_about_it(read: Callable[[], object]) -> None:
    with pytest.raises(ValidationError) as caught:
        read()
    assert "my canary" not in str(caught.value)


def test_another_error_keeps_its_words() -> None:
    assert describe(RuntimeError("out of room")) == "RuntimeError: out of room"
    assert message_of(KeyError("x")) == "'x'"
