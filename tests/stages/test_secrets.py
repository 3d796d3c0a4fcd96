"""Secrets on their way through recorder and observer: what each of them keeps, shows and sends."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from memstream.memory.policies import MemoryPolicy, ObservePolicy, PrivacyPolicy
from memstream.schemas.cloudevents import MASKED_HEADER
from memstream.schemas.errors import Poison, Transient
from memstream.schemas.turns import Turn
from tests.support.model_server import Answer, Ask
from tests.support.observer_world import LETTERS, ObserverWorld
from tests.support.openai_bodies import OBSERVATION

PASSWORD = "Zebra-7791-kite"
SAID = f"My password is {PASSWORD}, and I prefer tea."


def everything(world: ObserverWorld) -> str:
    """All bytes that the stage has written, and all prompts."""
    rows = [*world.harness.rows.local.items(), *world.harness.rows.changelog.items()]
    points = [
        (point.payload, point.text) for name in world.points.collections for point in world.points.of(name).values()
    ]
    prompts = [ask.messages for ask in world.model.asks]
    return repr((rows, points, prompts, world.harness.sent)) + "".join(
        base64_parts for _, row in rows for base64_parts in _decoded(row)
    )


def _decoded(row: bytes) -> list[str]:
    """The values of records inside a row, which are base64 there."""
    return [
        base64.urlsafe_b64decode(found + b"==").decode("utf-8", "replace")
        for found in re.findall(rb'"value":"([\w+/=-]+)"', row)
    ]


def copying(ask: Ask) -> Answer:
    """A model that writes down whatever it reads."""
    said = "".join(ask.turns.values()).removeprefix("user: ")
    return {"observations": [{**OBSERVATION, "content": said[:200], "evidence": said.strip()}]}


async def test_a_masked_span_stands_in_prompt_row_record_and_projection() -> None:
    world = ObserverWorld(copying)
    await world.deliver(world.turn(SAID), world.turn("And you?", "t2"))
    assert "[password]" in repr(world.model.asks[0].messages)
    assert "[password]" in repr(world.model.asks[1].messages), "as an earlier message"
    assert PASSWORD not in everything(world)
    (first, _) = world.observed()
    assert "[password]" in first.observations[0].content


async def test_the_quote_of_another_statement_does_not_tell_the_secret() -> None:
    def model(ask: Ask) -> Answer:
        whole = "My password is [password], and I prefer tea."
        return {"observations": [{**OBSERVATION, "content": "Prefers tea", "evidence": whole}]}

    world = ObserverWorld(model)
    await world.deliver(world.turn(SAID))
    assert world.observed()[0].observations[0].evidence == "I prefer tea"


async def test_a_turn_that_waits_is_masked_and_is_observed_later() -> None:
    away = True

    def model(ask: Ask) -> Answer:
        if away:
            raise Transient("model", "away")
        return copying(ask)

    world = ObserverWorld(model)
    await world.deliver(world.turn(SAID))
    waiting = world.row().waiting
    assert waiting == 1
    assert PASSWORD not in everything(world)
    away = False
    await world.deliver(world.command())
    assert world.row().waiting == 0
    assert "[password]" in world.observed()[0].observations[0].content
    assert PASSWORD not in everything(world)


async def test_the_dead_letter_of_a_masked_turn_says_so_and_can_be_put_back() -> None:
    def model(ask: Ask) -> Answer:
        raise Poison("refused_by_model", "no")

    world = ObserverWorld(model)
    await world.deliver(world.turn(SAID))
    (letter,) = world.harness.on(LETTERS)
    assert dict(letter.headers)[MASKED_HEADER] == b"1"
    assert PASSWORD.encode() not in (letter.value or b"")
    assert Turn.read(letter.value or b"").messages[0].text == "My password is [password], and I prefer tea."
    world = ObserverWorld(model)
    await world.deliver(world.turn("I prefer tea."))
    (letter,) = world.harness.on(LETTERS)
    assert MASKED_HEADER not in dict(letter.headers)


async def test_a_label_is_the_floor_of_an_observation() -> None:
    world = ObserverWorld(copying)
    await world.deliver(world.turn("Write to me at ana@example.com."))
    assert world.observed()[0].observations[0].sensitivity == "secret"
    assert world.row().working.entries[0].sensitivity == "secret"


async def test_what_a_model_makes_up_is_masked_or_dropped_too() -> None:
    def model(ask: Ask) -> Answer:
        content = "Prefers tea and has the card 4111 1111 1111 1111"
        return {"observations": [{**OBSERVATION, "content": content, "evidence": "I prefer tea"}]}

    world = ObserverWorld(model)
    await world.deliver(world.turn("I prefer tea."))
    assert [each.content for each in world.observed()[0].observations] == ["Prefers tea and has the card [card]"]
    policy = MemoryPolicy(observe=ObservePolicy(patience=0.02), privacy=PrivacyPolicy(card="drop"))
    world = ObserverWorld(model, policy=policy)
    await world.deliver(world.turn("I prefer tea."))
    assert world.observed()[0].observations == ()


async def test_the_text_of_a_source_function_is_protected() -> None:
    def source(turn: Turn) -> str | None:
        return f"It has the password: {PASSWORD}"

    world = ObserverWorld(copying, source=source)
    await world.deliver(world.turn("Hello."))
    assert PASSWORD not in everything(world)
    assert "[password]" in repr(world.model.asks[0].messages)


async def test_a_misplaced_turn_is_sent_again_as_it_came() -> None:
    world = ObserverWorld(partitions=4)
    home = world.turn(SAID)
    record = world.turn(SAID, partition=(home.position.partition + 1) % 4)
    await world.deliver(record)
    (again,) = [each for each in world.harness.sent if each.topic == "memory.turns"]
    assert again.value == record.value


def test_the_helper_looks_into_records_inside_rows() -> None:
    value: Any = base64.urlsafe_b64encode(json.dumps({"a": PASSWORD}).encode()).decode()
    assert PASSWORD in "".join(_decoded(f'{{"value":"{value}"}}'.encode()))
