"""The checked-in JSON Schemas are those of the code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from jsonschema import Draft202012Validator
from pydantic import JsonValue

from docs.generate import json_schemas
from memstream.schemas.policies import TenantPolicy
from tests.support.cases import for_each

GOLDEN = sorted((Path(__file__).resolve().parents[2] / "data" / "golden").glob("v*/*.json"))


def test_files_and_code_agree() -> None:
    assert json_schemas.differences() == [], "mend: make generate"


@for_each("text", json_schemas.expected_files().values())
def test_each_is_a_valid_schema(text: str) -> None:
    Draft202012Validator.check_schema(json.loads(text))


def test_drift_is_told_by_file(tmp_path: Path) -> None:
    json_schemas.write(tmp_path)
    assert json_schemas.differences(tmp_path) == []
    (tmp_path / "fact.json").write_text("{}")
    (tmp_path / "turn.json").unlink()
    (tmp_path / "strict" / "old.json").write_text("{}")
    assert json_schemas.differences(tmp_path) == [
        "turn.json: missing",
        "fact.json: differs from the code",
        "strict/old.json: no contract has this name",
    ]
    json_schemas.write(tmp_path)
    assert json_schemas.differences(tmp_path) == []


FREE = {
    *("metadata", "args", "result", "parts", "settings", "counts", "left_out", "record"),
    *TenantPolicy.model_fields,
    *chain.from_iterable(json_schemas.OPENAI_FIELDS.values()),
}
"""Fields of free JSON: the schemas do not say which names it has."""


def valid_examples() -> list[tuple[str, JsonValue]]:
    """Each contract's name with its golden records, as this version writes them."""
    named = {published.name: published for published in json_schemas.PUBLISHED}
    return [
        (name, json.loads(named[name].contract.read(path.read_bytes()).to_bytes()))
        for path in GOLDEN
        for name in [path.name.split(".")[0]]
    ]


def with_one_more_field(value: JsonValue) -> Iterator[JsonValue]:
    """The value once for each object in it that has named properties, with one more field in that object."""
    if isinstance(value, list):
        for n, item in enumerate(value):
            for more in with_one_more_field(item):
                yield [*value[:n], more, *value[n + 1 :]]
    if isinstance(value, dict):
        yield value | {"later_field": 1}
        for name, item in value.items():
            if name not in FREE:
                for more in with_one_more_field(item):
                    yield value | {name: more}


def without_later_fields(value: JsonValue) -> JsonValue:
    """Golden turns hold unknown fields, which turns keep."""
    if isinstance(value, dict):
        return {name: without_later_fields(item) for name, item in value.items() if name != "later_field"}
    return [without_later_fields(item) for item in value] if isinstance(value, list) else value


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((json_schemas.FOLDER / name).read_text()))


@for_each("published", json_schemas.PUBLISHED, ids=lambda p: p.name)
class TestTwoSets:
    def test_readers_accept_one_more_field_at_each_level_and_writers_do_not(
        self, published: json_schemas.Published
    ) -> None:
        readers, writers = validator(f"{published.name}.json"), validator(f"strict/{published.name}.json")
        examples = [without_later_fields(value) for name, value in valid_examples() if name == published.name]
        for example in examples:
            assert readers.is_valid(example)
            assert writers.is_valid(example)
            for longer in with_one_more_field(example):
                assert [error.message for error in readers.iter_errors(longer)] == []
                assert not writers.is_valid(longer), longer

    def test_every_object_with_named_properties_is_open_for_readers_and_closed_for_writers(
        self, published: json_schemas.Published
    ) -> None:
        for strict in (False, True):
            schema = json_schemas.schema_of(published, strict=strict)
            objects = [each for each in (schema, *schema.get("$defs", {}).values()) if "properties" in each]
            assert objects
            assert {each["additionalProperties"] for each in objects} == {not strict}

    def test_what_we_produce_has_every_field(self, published: json_schemas.Published) -> None:
        schema = json_schemas.schema_of(published)
        if published.view == "produced":
            assert set(schema["required"]) == set(schema["properties"])


def test_the_least_of_a_turn() -> None:
    (turn,) = (each for each in json_schemas.PUBLISHED if each.name == "turn")
    assert json_schemas.schema_of(turn)["required"] == ["tenant_id", "user_id", "session_id", "turn_id", "messages"]
