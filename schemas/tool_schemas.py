"""JSON Schemas of the tools' arguments and results, for MCP, HTTP and function calling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from .base import Contract
from .tools import ToolAccepted, ToolSpec

Json = dict[str, Any]
_UNSUPPORTED: Final = frozenset(("default", "minLength", "maxLength", "pattern", "minimum", "maximum", "format"))
"""Keywords that strict function calling does not support. memstream checks the values itself."""
_NAMED: Final = frozenset(("properties", "$defs"))
"""Keywords whose value is a map from names to schemas."""


def input_schema(spec: ToolSpec) -> Json:
    """Return the schema of a tool's arguments: an object without additional fields."""
    return _plain(spec.args.model_json_schema(mode="validation"))


def output_schema(spec: ToolSpec) -> Json:
    """Return the schema of a tool's result. A write may return the id of its command instead."""
    result = _written(spec.result)
    if spec.effect == "read":
        return result
    accepted = _written(ToolAccepted)
    definitions = {**result.pop("$defs", {}), **accepted.pop("$defs", {})}
    either: Json = {"type": "object", "anyOf": [result, accepted]}
    return {**either, "$defs": definitions} if definitions else either


def strict_input_schema(spec: ToolSpec) -> Json:
    """Return the schema of a tool's arguments for strict function calling: every property is required, and optional
    properties may be null."""
    schema = input_schema(spec)
    required = set(schema.get("required", ()))
    strict = _strict(schema)
    for name, field in strict.get("properties", {}).items():
        if name not in required and not _takes_null(field):
            description = field.pop("description", None)
            strict["properties"][name] = {"anyOf": [field, {"type": "null"}]}
            if description is not None:
                strict["properties"][name]["description"] = description
    return strict


def _written(contract: type[Contract]) -> Json:
    schema = _plain(contract.model_json_schema(mode="serialization"))
    return {**schema, "required": list(schema.get("properties", {}))}


def _plain(schema: Json) -> Json:
    """Remove titles and the contract's own description from a schema."""

    def change(node: Json) -> Json:
        unwanted = {"title", "description"} if "properties" in node else {"title"}
        return {name: value for name, value in node.items() if name not in unwanted}

    return _changed(schema, change)


def _strict(schema: Json) -> Json:
    def change(node: Json) -> Json:
        kept = {name: value for name, value in node.items() if name not in _UNSUPPORTED}
        if kept.get("type") == "object":
            kept |= {"required": list(kept.get("properties", {})), "additionalProperties": False}
        return kept

    return _changed(schema, change)


def _changed(schema: Json, change: Callable[[Json], Json]) -> Json:
    """Apply `change` to every schema within a schema, innermost first."""

    def walked(value: Any, *, named: bool = False) -> Any:
        if isinstance(value, list):
            return [walked(each) for each in value]
        if not isinstance(value, dict):
            return value
        inner = {name: walked(each, named=not named and name in _NAMED) for name, each in value.items()}
        return inner if named else change(inner)

    whole: Json = walked(schema)
    return whole


def _takes_null(field: Json) -> bool:
    return any(option == {"type": "null"} for option in _options(field))


def _options(field: Json) -> Iterator[Json]:
    yield field
    yield from field.get("anyOf", ())


def openai_definition(spec: ToolSpec) -> Json:
    """Return a tool in the format of OpenAI's Chat Completions, with a strict schema."""
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": strict_input_schema(spec),
        "strict": True,
    }
    return {"type": "function", "function": function}
