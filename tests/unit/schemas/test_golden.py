"""Events as version 1 wrote them: every later version reads them and keeps what it knew.

Files under tests/data/golden/v1 are never edited after a release; a new minor version adds files of its own. Fields
called `later_field` stand for what a version after the reader's adds.
"""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator
from pydantic import JsonValue

from docs.generate.json_schemas import FOLDER, PUBLISHED, Published
from memstream.schemas.base import Contract
from memstream.schemas.commands import FactsApply
from memstream.schemas.turns import Turn
from tests.support.cases import for_each

GOLDEN = sorted((Path(__file__).resolve().parents[2] / "data" / "golden").glob("v*/*.json"))
BY_NAME = {published.name: published for published in PUBLISHED}
LATER = "later_field"


def published_of(path: Path) -> Published:
    return BY_NAME[path.name.split(".")[0]]


def without_later(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: without_later(item) for name, item in value.items() if name != LATER}
    return [without_later(item) for item in value] if isinstance(value, list) else value


def lost(known: JsonValue, now: JsonValue, where: str = "") -> list[str]:
    """Where `now` differs from what stood in the fixture; fields that `now` has beyond are its defaults."""
    if isinstance(known, dict) and isinstance(now, dict):
        return [
            line
            for name, item in known.items()
            for line in (lost(item, now[name], f"{where}.{name}") if name in now else [f"{where}.{name} is gone"])
        ]
    if isinstance(known, list) and isinstance(now, list) and len(known) == len(now):
        return [line for n, (a, b) in enumerate(zip(known, now, strict=True)) for line in lost(a, b, f"{where}[{n}]")]
    return [] if known == now else [f"{where}: {known!r} became {now!r}"]


def test_there_is_a_fixture_for_every_contract() -> None:
    assert {path.name.split(".")[0] for path in GOLDEN} == set(BY_NAME)


@for_each("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
class TestGolden:
    def test_is_read_and_keeps_what_was_known(self, path: Path) -> None:
        contract: type[Contract] = published_of(path).contract
        raw = path.read_bytes()
        event = contract.read(raw)
        known: JsonValue = json.loads(raw)
        if contract is not Turn:  # turns keep everything, unknown fields too
            known = without_later(known)
        assert lost(known, json.loads(event.to_bytes())) == []

    def test_is_stable_once_written(self, path: Path) -> None:
        contract = published_of(path).contract
        once = contract.read(path.read_bytes()).to_bytes()
        assert contract.read(once).to_bytes() == once

    def test_what_we_write_fits_the_published_schemas(self, path: Path) -> None:
        published = published_of(path)
        event = without_later(json.loads(published.contract.read(path.read_bytes()).to_bytes()))
        for name in (f"{published.name}.json", f"strict/{published.name}.json"):
            schema = json.loads((FOLDER / name).read_text())
            assert [error.message for error in Draft202012Validator(schema).iter_errors(event)] == []


def test_a_commands_args_are_read_as_facts_apply() -> None:
    from memstream.schemas.commands import Command

    path = next(path for path in GOLDEN if path.name == "command.facts_apply.json")
    command = Command.read(path.read_bytes())
    assert len(FactsApply.from_payload(command.args).changes) == 3
