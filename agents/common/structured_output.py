"""Structured answers of models: a strict schema goes out, and the answer is read tolerantly.

An item that breaks a rule is dropped and counted. Only an unusable outer shape is an error: ValueError, which the
completions adapter answers with one repair.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, ValidationError, model_validator

from ...schemas.base import Content, Instant

I = TypeVar("I", bound="Item")  # noqa: E741


class Item(BaseModel):
    """One item of an answer. Unknown properties are ignored; null means absent."""

    model_config = ConfigDict(hide_input_in_errors=True, frozen=True, extra="ignore", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, raw: object) -> object:
        return {name: value for name, value in raw.items() if value is not None} if isinstance(raw, dict) else raw


@dataclass(frozen=True, slots=True)
class ParsedItems(Generic[I]):
    """The usable items in their order, each with its place in the answer (from 1); `dropped`: how many were not."""

    items: tuple[tuple[int, I], ...]
    dropped: int


def parse_items(value: JsonValue, key: str, item: type[I]) -> ParsedItems[I]:
    """Read `{key: [...]}`. Raises ValueError when the answer has another outer shape."""
    if not isinstance(value, dict):
        raise ValueError(f'the answer must be an object {{"{key}": [...]}}')
    found = value.get(key)
    if not isinstance(found, list):
        raise ValueError(f'the answer must have "{key}", a list')
    usable: list[tuple[int, I]] = []
    for place, raw in enumerate(found, start=1):
        try:
            usable.append((place, item.model_validate(raw)))
        except ValidationError:
            continue
    return ParsedItems(tuple(usable), len(found) - len(usable))


def parse_any(value: JsonValue, key: str, item: type[I]) -> ParsedItems[I]:
    """Read `{key: [...]}`, where the list may be absent: for tasks whose answer is most often empty."""
    if isinstance(value, dict) and value.get(key) is None:
        return ParsedItems((), 0)
    return parse_items(value, key, item)


def strict_schema(key: str, item: type[Item]) -> dict[str, JsonValue]:
    """Return the JSON schema of `{key: [item]}` in strict mode: all properties required, optional ones nullable."""
    return strict_object({key: item})


def strict_object(lists: Mapping[str, type[Item]]) -> dict[str, JsonValue]:
    """Return the same for an answer with several lists, by name."""
    properties: dict[str, JsonValue] = {}
    for key, item in lists.items():
        schema = item.model_json_schema(mode="validation")
        definitions = schema.pop("$defs", {})
        properties[key] = {"type": "array", "items": _strict(schema, definitions)}
    return {"type": "object", "properties": properties, "required": list(lists), "additionalProperties": False}


_KEPT = ("type", "enum", "const", "description")


def _strict(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Reduce a schema to what strict mode knows, with references resolved in place."""
    if "$ref" in node:
        return _strict(deepcopy(definitions[node["$ref"].rpartition("/")[2]]), definitions)
    strict = {name: node[name] for name in _KEPT if name in node}
    if "anyOf" in node:
        strict["anyOf"] = [_strict(option, definitions) for option in node["anyOf"]]
    if "items" in node:
        strict["items"] = _strict(node["items"], definitions)
    if "properties" in node:
        strict["properties"] = {name: _strict(sub, definitions) for name, sub in node["properties"].items()}
        strict["required"] = list(node["properties"])
        strict["additionalProperties"] = False
    return strict


def short_id(value: object) -> str | None:
    """Read a short id: `w1` or `[w1]`; None when there is none."""
    if value is None:
        return None
    text = str(value).strip().removeprefix("[").removesuffix("]").strip().lower()
    return text or None


def _moment(value: object) -> object:
    """Read a time as models write it. A date means its midnight; a time without a zone is UTC."""
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return value
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _stripped(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


ShortId = Annotated[str | None, BeforeValidator(short_id)]
Moment = Annotated[Instant | None, BeforeValidator(_moment)]
Statement = Annotated[Content, BeforeValidator(_stripped)]
"""The text of an item. A text of white space is invalid."""
