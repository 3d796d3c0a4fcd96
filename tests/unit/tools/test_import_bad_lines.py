"""Malformed lines of an import: each costs its own line, with a reason and a remedy. A worker refuses them, too."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import pytest

from memstream.agents.common.restored import RestoreCount, decoded_records
from memstream.agents.common.restored_turns import decode_restored_turn
from memstream.memory.erasures import ErasedUsers
from memstream.memory.secrets.secret_filter import SecretFilter
from memstream.schemas.errors import Poison
from memstream.schemas.restore import RESTORED_BY, RecordsRestore, RecordToRestore, TurnToRestore
from memstream.schemas.turns import Owner
from memstream.streams.log.port import Position, Record
from memstream.tools.importing.lines import ImportLine, ImportPlan, read_page
from tests.support.generated_memory import GeneratedMemory

MEMORY = GeneratedMemory(1, "acme", group=True)
BY_KIND = {each["kind"]: each for each in map(json.loads, MEMORY.lines()) if each["kind"] in RESTORED_BY}
SECRETS = SecretFilter()
PLAN = ImportPlan.of("f.ndjson", MEMORY.header().encode())


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


HOSTILE: tuple[Any, ...] = (
    *(None, [], {}, "", "x", "a/b", "acme/user", "acme/king/u1", "\ud800", True, -1, 2.5, 2**53 + 1, 2**63, 10**40),
    *(float("nan"), float("inf"), nested(70), nested(500), {"scope": "king", "id": "u"}, {"scope": "user", "id": 1}),
    *("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", ["\ud800"], {"\ud800": 1}),
)


def places_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a line."""
    if path:
        yield path
    if isinstance(value, dict | list) and path[-1:] != ("embedding",):
        for name, each in value.items() if isinstance(value, dict) else list(enumerate(value))[:1]:
            yield from places_of(each, (*path, name))


def with_value(line: dict[str, Any], path: tuple[Any, ...], value: Any) -> bytes:
    changed = copy.deepcopy(line)
    inner: Any = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return json.dumps(changed).encode()


@pytest.mark.parametrize("kind", BY_KIND)
def test_a_malformed_line_costs_that_line_only(kind: str) -> None:
    moving = ImportPlan.of("f.ndjson", MEMORY.header().encode(), tenant_id="other")
    good = json.dumps(BY_KIND["fact"]).encode()
    refused = 0
    line = {"kind": kind, "record": {**BY_KIND[kind]["record"], "embedding": None}}
    line["record"].pop("before", None)  # it has the fields of `fact`
    for n, path in enumerate(places_of(line)):
        texts = [with_value(line, path, value) for value in HOSTILE] + [good]
        lines = [ImportLine(n, text) for n, text in enumerate(texts, start=2)]
        page = read_page((PLAN, moving)[n % 2], lines, SECRETS, ErasedUsers())
        assert {each.line for each in page.tally.errors} <= {each.number for each in lines[:-1]}
        for fault in page.tally.errors:
            assert (fault.file, bool(fault.what), bool(fault.what_to_do)) == ("f.ndjson", True, True)
            json.dumps(fault.to_payload(), ensure_ascii=False).encode()
        for each in chain.from_iterable(page.commands.values()):
            json.dumps(each.record, allow_nan=False, ensure_ascii=False).encode()
        refused += len(page.tally.errors)
    assert refused > 50


def test_a_line_of_no_known_form_is_an_error_of_that_line() -> None:
    texts = [b"{", b"[1]", b"1", b'{"kind": []}', b'{"kind": {}, "record": {}}', b'{"kind": "fact", "record": []}']
    texts += [b'{"kind": "fact", "record": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", b"\xff\xfe", b'{"kind": "\\ud800"}']
    lines = [ImportLine(n, text) for n, text in enumerate(texts, start=2)]
    errors = read_page(PLAN, lines, SECRETS, ErasedUsers()).tally.errors
    assert [each.line for each in errors] == list(range(2, 2 + len(texts)))


@pytest.mark.parametrize("kind", [kind for kind in BY_KIND if kind != "turn"])
def test_a_worker_refuses_a_record_that_no_engine_can_store(kind: str) -> None:
    """A command can come from elsewhere than the importer."""
    record = BY_KIND[kind]["record"]
    number = {"version": 2**53 + 1} if "version" in record else {"turn_number": 2**60}
    for wrong, said in [
        ({"x": nested(70)}, "nested deeper than 64"),
        ({"x": 2**63}, "a number beyond"),
        ({"x": [2**63]}, "an integer beyond 64 bits"),
        ({"x": float("inf")}, "NaN or an infinity"),
        ({"x": "\ud800"}, "lone surrogate"),
        (number, "a number beyond"),
    ]:
        bad = RecordToRestore.model_construct(line=3, kind=kind, record={**record, **wrong})
        args = RecordsRestore.model_construct(
            source="0" * 16, exported_at=datetime.now(UTC), records=(bad,), dedup=True
        )
        count = RestoreCount()
        assert list(decoded_records(args, RESTORED_BY[BY_KIND[kind]["kind"]], lambda _: True, count)) == []
        assert said in count.refused[0].why


def turn_record(change: dict[str, Any]) -> Record:
    page = read_page(PLAN, [ImportLine(2, json.dumps(BY_KIND["turn"]).encode())], SECRETS, ErasedUsers())
    [(_, turn)] = page.turns
    value = turn.to_payload()
    messages: Any = value["messages"]
    messages[0] |= change
    key = turn.session_key.encode()
    return Record(Position("memory.turns", 0, 0), key, json.dumps(value).encode(), (), 0)


def test_a_restored_turn_as_it_was_exported_is_decoded() -> None:
    assert isinstance(decode_restored_turn(turn_record({}), partitions=1).turn, TurnToRestore)


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"x": nested(70)}},
        {"metadata": {"x": 2**63}},
        {"metadata": {"x": float("nan")}},
        {"metadata": {"x": "\ud800"}},
        {"session_place": 2**62},
        {"session_place": 2**54},
        {"first_place": 2**63},
        {"message_index": 2**40},
        {"owner_key": "acme"},
        {"owner_key": "acme/king/u1"},
    ],
)
def test_a_restored_turn_that_no_engine_can_store_becomes_a_dead_letter(change: dict[str, Any]) -> None:
    with pytest.raises(Poison):
        decode_restored_turn(turn_record(change), partitions=1)


@pytest.mark.parametrize("key", ["", "a", "a/b", "a/user/b/c", "a/king/b", "a/user/"])
def test_a_malformed_key_is_no_owner(key: str) -> None:
    with pytest.raises(ValueError, match=r"owner_key|scope|id"):
        Owner.of_key(key)
