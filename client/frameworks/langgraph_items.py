"""Conversion between items of a LangGraph store and facts. Pure. Needs `memstream[langgraph]`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from ...schemas.base import CONTENT_MAX
from ...schemas.edits.common import EDIT_METADATA_MAX_BYTES
from ...schemas.facts import Fact
from ...schemas.ids import NAMESPACE
from ...schemas.turns import Owner, Scope
from . import framework

with framework("langgraph"):
    from langgraph.store.base import ListNamespacesOp, MatchCondition, PutOp, SearchItem, get_text_at_path

Namespace = tuple[str, ...]
SCOPES: Mapping[str, Scope] = {"users": "user", "agents": "agent", "orgs": "org", "groups": "group"}
"""Scope of the owner, by the first label of a namespace. The second label is the owner's id."""
OWNER = 2
"""Number of labels at the start of a namespace that name the owner."""
ITEM = "langgraph_item"
"""Field of a fact's metadata with the item's id, which is derived from namespace and key. Reads filter by it."""
STORED = "langgraph"
"""Field of a fact's metadata with the item: its path in the owner's namespace, name, value and times."""
NAME_MAX = 200


def owner_of(namespace: Namespace) -> Owner:
    """Return the owner at the start of a namespace. Raises ValueError if there is none."""
    if len(namespace) < OWNER or namespace[0] not in SCOPES or "*" in namespace[:OWNER]:
        first = ", ".join(f'("{name}", id)' for name in SCOPES)
        raise ValueError(f"the namespace {namespace} names no owner: it must begin with one of {first}")
    return Owner(scope=SCOPES[namespace[0]], id=namespace[1])


def item_id(namespace: Namespace, key: str) -> str:
    return str(uuid.uuid5(NAMESPACE, f"langgraph/{json.dumps([*namespace, key])}"))


def item_of(fact: Fact, owner: Namespace, score: float | None = None) -> SearchItem:
    """Return the item of a fact. A fact that no store wrote is an item in its owner's namespace, with its id as key."""
    stored = fact.metadata.get(STORED)
    if not isinstance(stored, dict):
        value: dict[str, Any] = {
            "text": fact.content,
            "subject": fact.subject,
            "category": fact.category,
            "valid_from": fact.valid_from.isoformat(),
        }
        updated = fact.last_reinforced_at or fact.recorded_at
        return SearchItem(owner, fact.fact_id, value, fact.recorded_at, updated, score)
    item: dict[str, Any] = stored
    return SearchItem(
        namespace=(*owner, *item["path"]),
        key=item["name"],
        value=item["value"],
        created_at=datetime.fromisoformat(item["created_at"]),
        updated_at=datetime.fromisoformat(item["updated_at"]),
        score=score,
    )


def item_metadata(op: PutOp, value: dict[str, Any], *, created_at: datetime, now: datetime) -> dict[str, JsonValue]:
    """Return the metadata of an item's fact. Raises ValueError if it is too large."""
    stored: dict[str, JsonValue] = {
        "path": list(op.namespace[OWNER:]),
        "name": op.key,
        "value": value,
        "created_at": created_at.isoformat(),
        "updated_at": now.isoformat(),
    }
    metadata: dict[str, JsonValue] = {ITEM: item_id(op.namespace, op.key), STORED: stored}
    size = len(json.dumps(metadata, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > EDIT_METADATA_MAX_BYTES:
        raise ValueError(
            f"the item {op.key} has {size} bytes of JSON with its namespace; at most {EDIT_METADATA_MAX_BYTES} fit"
        )
    return metadata


def plain_value(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value after a JSON round trip. Raises TypeError or ValueError if it is not JSON with 64-bit integers."""

    def small(digits: str) -> int:
        if not -(2**63) <= (number := int(digits)) < 2**63:
            raise ValueError(f"the number {digits} has more than 64 bits: put it as a string")
        return number

    plain: dict[str, Any] = json.loads(json.dumps(dict(value), allow_nan=False), parse_int=small)
    return plain


def statements_of(op: PutOp, value: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text of an item's fact, and an alternative text with the item's name.

    The alternative is used when another fact already has the text. The text has all strings of the value, or the
    strings of the fields in `index`. With `index=False` the text contains nothing from the value.
    """
    name = _cut("/".join((*op.namespace[OWNER:], op.key)), NAME_MAX)
    if op.index is False:
        text = f"Item {name}"
    else:
        texts = _strings(value) if op.index is None else (each for path in op.index for each in _at(value, path))
        text = "; ".join(each.strip() for each in texts if each.strip())
        text = text or f"{name}: {json.dumps(value, ensure_ascii=False)}"
    return _cut(text, CONTENT_MAX), f"{_cut(text, CONTENT_MAX - len(name) - 3)} ({name})"


def _at(value: Mapping[str, Any], path: str) -> list[str]:
    return get_text_at_path(dict(value), path)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _strings(each)


# ------------------------------------------------------------------------------------------------ selections
def prefix_of(op: ListNamespacesOp) -> Namespace:
    """Return the prefix of a listing, or () if it has none."""
    return next((each.path for each in op.match_conditions or () if each.match_type == "prefix"), ())


def matches_condition(namespace: Namespace, condition: MatchCondition) -> bool:
    """Return whether a namespace begins or ends with a path, in which `*` matches any label."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def matches_filter(value: Any, wanted: Mapping[str, Any] | None) -> bool:
    """Return whether a value matches a filter, by the rules of LangGraph's own stores."""
    return all(_matches(value.get(name), each) for name, each in (wanted or {}).items())


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compare(value, operator, each) for operator, each in wanted.items())
        return isinstance(value, Mapping) and matches_filter(value, wanted)
    if isinstance(wanted, tuple):
        wanted = list(wanted)
    return bool(value == wanted)


def _compare(value: Any, operator: str, wanted: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return (value == wanted) is (operator == "$eq")
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"unknown operator {operator}: $eq, $ne, $gt, $gte, $lt, $lte")
    if value is None:
        return False
    number, limit = float(value), float(wanted)
    if operator.startswith("$gt"):
        return number > limit or (operator == "$gte" and number == limit)
    return number < limit or (operator == "$lte" and number == limit)
