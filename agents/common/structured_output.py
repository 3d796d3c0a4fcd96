"""Structured model answers: a strict schema in the request, a tolerant parser for the items of the answer.

An invalid field with a default takes the default. An item with an invalid required field is dropped and counted. A
wrong outer shape, or an answer without a valid item, raises ValueError. The completions adapter then asks the model
once to repair the answer. The error names fields and faults, but no value of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, ValidationError, model_validator

from ...schemas.base import Content, Instant

FAULTS_NAMED = 5
"""Maximum number of faults that an error names."""

I = TypeVar("I", bound="Item")  # noqa: E741


class Item(BaseModel):
    """One item of an answer. Unknown properties are ignored; null means absent."""

    model_config = ConfigDict(hide_input_in_errors=True, frozen=True, extra="ignore", allow_inf_nan=False)

    other_names: ClassVar[Mapping[str, str]] = {}
    """Alternative field names that models use, mapped to the field."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, raw: object) -> object:
        return cls.given(raw) if isinstance(raw, dict) else raw

    @classmethod
    def given(cls, raw: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the fields that an item sets, by field name.

        A field's own name has priority over its alternative names. Case and separators do not matter (`isCorrection`,
        `Is correction`).
        """
        given: dict[str, JsonValue] = {}
        for name, value in raw.items():
            if value is not None and (name in cls.model_fields or _plain(name) not in given):
                given[_plain(name)] = value
        found: dict[str, JsonValue] = {}
        for other, name in (*((each, each) for each in cls.model_fields), *cls.other_names.items()):
            if name not in found and _plain(other) in given:
                found[name] = given[_plain(other)]
        return found


def _plain(name: str) -> str:
    """Return a field name in lower case without separators."""
    return _SEPARATORS.sub("", name).lower()


_SEPARATORS = re.compile(r"[\s_-]+")


@dataclass(frozen=True, slots=True)
class ParsedItems(Generic[I]):
    """The valid items in order, each with its place in the answer (from 1), and the number of dropped items."""

    items: tuple[tuple[int, I], ...]
    dropped: int
    faults: tuple[str, ...] = ()
    """Faults of dropped items and of fields that took their default, as `field: message`."""


def parse_items(value: JsonValue, key: str, item: type[I]) -> ParsedItems[I]:
    """Parse `{key: [...]}`. Raises ValueError when the outer shape is wrong, or when no item is valid."""
    if not isinstance(value, dict):
        raise ValueError(f'the answer must be an object {{"{key}": [...]}}')
    found = value.get(key)
    if not isinstance(found, list):
        raise ValueError(f'the answer must have "{key}", a list')
    usable: list[tuple[int, I]] = []
    faults: dict[str, None] = {}
    for place, raw in enumerate(found, start=1):
        read, wrong = _read_item(raw, item)
        faults |= dict.fromkeys(wrong)
        if read is not None:
            usable.append((place, read))
    if found and not usable:
        raise ValueError(f'no item of "{key}" is usable: {"; ".join(islice(faults, FAULTS_NAMED))}')
    return ParsedItems(tuple(usable), len(found) - len(usable), tuple(faults))


def _read_item(raw: JsonValue, item: type[I]) -> tuple[I | None, list[str]]:
    """Parse one item. Return the item, or None when it is invalid, and the faults."""
    if not isinstance(raw, dict):
        return None, ["an item must be an object"]
    given, faults = item.given(raw), list[str]()
    for _ in ("as given", "without wrong fields"):
        try:
            return item.model_validate(given), faults
        except ValidationError as error:
            wrong = {str(each["loc"][0]) if each["loc"] else "": each["msg"] for each in _errors(error)}
        faults += [f"{name}: {message}" for name, message in wrong.items()]
        fields = [item.model_fields.get(name) for name in wrong]
        if any(field is None or field.is_required() for field in fields):
            return None, faults
        given = {name: each for name, each in given.items() if name not in wrong}
    return None, faults


def _errors(error: ValidationError) -> list[Any]:
    return error.errors(include_input=False, include_url=False, include_context=False)


def parse_any(value: JsonValue, key: str, item: type[I]) -> ParsedItems[I]:
    """Parse `{key: [...]}`; the list may be absent. For tasks whose answer is usually empty."""
    if isinstance(value, dict) and value.get(key) is None:
        return ParsedItems((), 0)
    return parse_items(value, key, item)


def strict_schema(key: str, item: type[Item]) -> dict[str, JsonValue]:
    """Return the JSON schema of `{key: [item]}` in strict mode: all properties required, optional ones nullable."""
    return strict_object({key: item})


def strict_object(lists: Mapping[str, type[Item]]) -> dict[str, JsonValue]:
    """Return the strict JSON schema of an answer with several lists, by list name."""
    properties: dict[str, JsonValue] = {}
    for key, item in lists.items():
        schema = item.model_json_schema(mode="validation")
        definitions = schema.pop("$defs", {})
        properties[key] = {"type": "array", "items": _strict(schema, definitions)}
    return {"type": "object", "properties": properties, "required": list(lists), "additionalProperties": False}


_KEPT = ("type", "enum", "const", "description")


def _strict(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Reduce a schema to the keywords of strict mode, with references resolved."""
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
    """Parse a short id from forms such as `w1`, `[w1]`, `[w1] Works at Google`. Return None when there is none."""
    if isinstance(value, list):
        value = value[0] if value else None
    if value is None:
        return None
    text = str(value.get("id") if isinstance(value, dict) else value).strip().lower()
    shown = _SHOWN_ID.match(text)
    text = shown.group(1) if shown else text.removeprefix("[").removesuffix("]").strip()
    return None if text in _NO_ID else text


def short_ids(value: object) -> list[str]:
    """Parse a list of short ids. Leave out what is none; return an empty list for anything but a list."""
    return [found for each in value if (found := short_id(each))] if isinstance(value, list) else []


_SHOWN_ID = re.compile(r"\[?\s*(?:(?:entry|observation|id)\s+)?#?([a-z]\d{1,4})(?:\s*\]|\s*:|\s|$)")
_NO_ID = frozenset({"", "null", "none", "n/a", "-", "false", "undefined"})
_PERIOD = re.compile(r"(\d{4})(?:[-/](\d{1,2})(?:[-/](\d{1,2}))?)?")


def _moment(value: object) -> object:
    """Parse a time as models write it. A date means midnight; a month or a year means its first day; the default zone
    is UTC."""
    return _read_moment(value, end=False)


def _moment_end(value: object) -> object:
    """Parse the time at which something ends. A month or a year means its end."""
    return _read_moment(value, end=True)


def _read_moment(value: object, *, end: bool) -> object:
    if not isinstance(value, str) or not value.strip():
        return None
    text = value.strip()
    try:
        if found := _PERIOD.fullmatch(text):
            return _first_of(*found.groups(), end=end)
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("is no time") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _first_of(year: str, month: str | None, day: str | None, *, end: bool) -> datetime:
    """Return the first moment of a period. For the end of a month or a year, return the first moment after it."""
    if month is None:
        return datetime(int(year) + end, 1, 1, tzinfo=UTC)
    if day is None and end:
        years, months = divmod(int(month), 12)
        return datetime(int(year) + years, months + 1, 1, tzinfo=UTC)
    return datetime(int(year), int(month), int(day or 1), tzinfo=UTC)


def _stripped(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


ShortId = Annotated[str | None, BeforeValidator(short_id)]
Moment = Annotated[Instant | None, BeforeValidator(_moment)]
MomentEnd = Annotated[Instant | None, BeforeValidator(_moment_end)]
Statement = Annotated[Content, BeforeValidator(_stripped)]
"""The text of an item. White space alone is invalid."""
