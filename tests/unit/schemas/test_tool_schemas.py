"""Schemas of the tools: valid, closed, and strict where function calling is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

from memstream.schemas.tool_schemas import input_schema, output_schema, strict_input_schema
from memstream.schemas.tools import TOOLS, TOOLS_BY_NAME, ToolAccepted, ToolSpec
from tests.support.cases import for_each


def objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, list):
        for each in node:
            yield from objects(each)
    elif isinstance(node, dict):
        if node.get("type") == "object" and "properties" in node:
            yield node
        for each in node.values():
            yield from objects(each)


def test_there_are_twenty_tools_with_names_of_their_own() -> None:
    assert len(TOOLS) == len(TOOLS_BY_NAME) == 20


@for_each("spec", TOOLS, ids=lambda spec: spec.name)
class TestSchemas:
    def test_they_are_valid_and_closed(self, spec: ToolSpec) -> None:
        for schema in (input_schema(spec), output_schema(spec), strict_input_schema(spec)):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            assert all(each["additionalProperties"] is False for each in objects(schema))

    def test_strict_ones_require_every_property(self, spec: ToolSpec) -> None:
        schema = strict_input_schema(spec)
        assert all(set(each["required"]) == set(each["properties"]) for each in objects(schema))
        assert "default" not in str(schema)

    def test_optional_arguments_may_be_null_where_all_are_required(self, spec: ToolSpec) -> None:
        needed = {name: field for name, field in spec.args.model_fields.items() if field.is_required()}
        validator = Draft202012Validator(strict_input_schema(spec))
        optional = dict.fromkeys(set(spec.args.model_fields) - set(needed))
        errors = [error.message for error in validator.iter_errors(optional)]
        assert all("is a required property" in message for message in errors)
        assert len(errors) == len(needed)

    def test_a_write_may_answer_with_its_command(self, spec: ToolSpec) -> None:
        accepted = ToolAccepted(accepted="c1").to_payload()
        assert Draft202012Validator(output_schema(spec)).is_valid(accepted) == (spec.effect != "read")
