"""Markdown tables of the contracts, for docs/reference: topics, records, fields, collections.

`reference_tables.py` writes them into the pages.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from memstream.schemas.access import OPERATOR, accesses
from memstream.schemas.archive import ArchivedText
from memstream.schemas.base import Contract
from memstream.schemas.blocks import StoredBlock, StoredHoldings
from memstream.schemas.budgets import StoredBudget
from memstream.schemas.collections import COLLECTIONS, CollectionSpec
from memstream.schemas.command_kinds import KINDS
from memstream.schemas.digests import StoredDigest
from memstream.schemas.episodes import StoredEpisode
from memstream.schemas.facts import StoredFact
from memstream.schemas.groups import StoredGroup
from memstream.schemas.labels import SessionLabel, TurnLabel
from memstream.schemas.links import StoredLinks
from memstream.schemas.procedures import StoredProcedure
from memstream.schemas.prospective import StoredTask
from memstream.schemas.tasks import TASKS
from memstream.schemas.topics import (
    COMMANDS,
    COMMANDS_SESSION,
    DEAD_LETTER_SUFFIX,
    PARKED,
    TOPICS,
    Topic,
    catalogue,
)
from memstream.schemas.working_set import StoredMessage, StoredWorkingEntry

from .asyncapi import ARGS, VALUES
from .json_schemas import PUBLISHED, file_name, schema_of

STORED: Final[dict[str, type[Contract]]] = {
    contract.__name__: contract
    for contract in (
        StoredMessage,
        StoredWorkingEntry,
        StoredEpisode,
        StoredFact,
        StoredDigest,
        StoredProcedure,
        StoredHoldings,
        StoredBlock,
        StoredTask,
        StoredGroup,
        ArchivedText,
        StoredBudget,
        StoredLinks,
        TurnLabel,
        SessionLabel,
    )
}
"""Stored forms of records in Qdrant, by class name."""
Json = dict[str, Any]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


_CODE_WITH_BAR = re.compile(r"`([^`]*\|[^`]*)`")


def _cell(text: str) -> str:
    """Return the text of a table cell. Code with `|` is written as HTML, because renderers differ in how it is
    escaped."""
    text = _CODE_WITH_BAR.sub(lambda code: f"<code>{html.escape(code[1], quote=False)}</code>", text)
    return text.replace("|", "&#124;")


# ------------------------------------------------------------------------------------------------ topics
def topics() -> str:
    """Return the topic catalogue as a table. The dead-letter topics share one row, because only their names differ."""
    rows = [_topic(topic) for topic in catalogue() if not topic.name.endswith(DEAD_LETTER_SUFFIX)]
    letters = [topic for topic in catalogue() if topic.name.endswith(DEAD_LETTER_SUFFIX)]
    names = ", ".join(f"`{topic.name}`" for topic in letters)
    rows.insert(len(TOPICS), [names, *_topic(letters[0])[1:6], "the stage that refused the record", "operators"])
    columns = ("topic", "key", "partitions", "clean-up", "kept", "record size", "written by", "read by")
    return table(columns, rows)


def _topic(topic: Topic) -> list[str]:
    settings = topic.settings()
    size = settings.get("max.message.bytes")
    count = "deployment" if topic in TOPICS else "1" if topic == PARKED else "as its stage"
    kept = "the last of each key" if topic.retention_days is None else _days(topic.retention_days)
    return [
        f"`{topic.name}`",
        topic.key,
        count if topic.partitions is None else str(topic.partitions),
        ", ".join((topic.clean_up, *(f"`{name}` {value}" for name, value in topic.config))),
        kept,
        "the broker's" if size is None else f"{int(size) // 1024 // 1024} MiB",
        ", ".join(topic.written_by),
        ", ".join(topic.read_by),
    ]


def access() -> str:
    """Return a table of the topics that each role may produce and consume, without the operator, who may do both."""

    def names(topics: Iterable[Topic]) -> str:
        return quoted(topic.name for topic in topics)

    def quoted(found: Iterable[str]) -> str:
        return ", ".join(f"`{name}`" for name in found) or "–"

    rows = [
        [each.role, names(each.produces), names(each.consumes), quoted(each.groups), quoted(each.watches)]
        for each in accesses()
        if each.role != OPERATOR
    ]
    return table(("role", "produces", "consumes", "group", "looks at"), rows)


def _days(days: int) -> str:
    return f"{days} day" + ("" if days == 1 else "s")


def records() -> str:
    """Return a table of the records on each topic."""
    about = {published.name: published.contract.__name__ for published in PUBLISHED}
    rows = [
        [f"`{topic}`", about[value.contract], f"`{value.contract}.json`", f"`{value.ce_type}`"]
        for topic, value in VALUES.items()
    ]
    rows += [
        [f"`{topic}`, `args` of `{kind}`", about[contract], f"`{contract}.json`", "–"]
        for topic, kinds in ARGS.items()
        for kind, contract in kinds.items()
    ]
    return table(("topic", "record", "JSON Schema", "ce_type"), rows)


def kinds() -> str:
    """Return a table of the kinds of commands, with the stage that applies each kind, its arguments and its result."""
    about = {"owner": COMMANDS.name, "session": COMMANDS_SESSION.name}
    return table(
        ("kind", "topic", "applied by", "args", "result"),
        [
            [f"`{kind.name}`", about[kind.address], kind.writer, _named(kind.args), _named(kind.result)]
            for kind in KINDS
        ],
    )


def _named(contract: type[Contract] | None) -> str:
    return "below" if contract is None else f"`{file_name(contract)}`"


# ------------------------------------------------------------------------------------------------ collections
def collections() -> str:
    return table(
        ("collection", "vectors", "indexed payload fields"),
        [[f"`{spec.name}`", _vectors(spec), _indexed(spec)] for spec in COLLECTIONS],
    )


def _vectors(spec: CollectionSpec) -> str:
    names = ("dense", "lexical") if spec.has_vectors else ()
    return ", ".join((*names, *(("window",) if spec.has_windows else ()))) or "none"


def _indexed(spec: CollectionSpec) -> str:
    kinds: dict[str, list[str]] = {}
    for each in spec.fields:
        kinds.setdefault(each.kind, []).append(f"`{each.path}`" + (" (tenant)" if each.is_tenant else ""))
    return "; ".join(f"{kind}: {', '.join(paths)}" for kind, paths in kinds.items())


def tasks() -> str:
    return ", ".join(f"`{task}`" for task in TASKS) + "."


# ------------------------------------------------------------------------------------------------ fields
class Fields:
    """Field tables of one page. A definition that several records share is shown only the first time."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def of(self, name: str) -> str:
        """Return the field table of a published contract or of a stored form in Qdrant. The table of a stored form has
        only the fields that are not in the published record."""
        if name in STORED:
            return self._stored(STORED[name])
        (published,) = (each for each in PUBLISHED if each.name == name)
        return self._tables(schema_of(published), is_sent=published.view == "sent")

    def _stored(self, contract: type[Contract]) -> str:
        schema = contract.model_json_schema(mode="serialization")
        for published in PUBLISHED:
            if contract is not published.contract and issubclass(contract, published.contract):
                known = published.contract.model_fields
                schema["properties"] = {
                    field: value for field, value in schema["properties"].items() if field not in known
                }
        return self._tables(schema, is_sent=False)

    def _tables(self, schema: Json, *, is_sent: bool) -> str:
        self._shown.add(schema["title"])
        definitions: Json = schema.get("$defs", {})
        parts = [_fields(schema, is_sent=is_sent)]
        for name in _used(schema["properties"], definitions):
            if name not in self._shown and "properties" in definitions[name]:
                self._shown.add(name)
                parts.append(f"`{name}`:\n\n{_fields(definitions[name], is_sent=is_sent)}")
        return "\n\n".join(parts)


def _used(node: Any, definitions: Json) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to, in field order, each followed by its nested
    definitions."""
    if isinstance(node, list):
        for item in node:
            yield from _used(item, definitions)
    elif isinstance(node, dict):
        if "$ref" in node:
            name = _name_of(node)
            yield name
            yield from _used(definitions[name].get("properties", {}), definitions)
        for value in node.values():
            yield from _used(value, definitions)


def _name_of(reference: Json) -> str:
    name: str = reference["$ref"].rpartition("/")[2]
    return name


def _fields(schema: Json, *, is_sent: bool) -> str:
    required = schema.get("required", ())
    rows = []
    for name, field in schema["properties"].items():
        row = [f"`{name}`", _type(field)]
        if is_sent:
            row.append("needed" if name in required else _default(field))
        rows.append(row)
    return table(("field", "type", "default") if is_sent else ("field", "type"), rows)


def _default(field: Json) -> str:
    default = field.get("default")
    if default is None:
        return "null" if "default" in field else "empty"
    return {"": "empty", "[]": "empty", "{}": "empty", "False": "false", "True": "true"}.get(str(default), str(default))


def _type(field: Json) -> str:
    if "$ref" in field:
        name = _name_of(field)
        return "any JSON" if name == "JsonValue" else f"`{name}`"
    if "anyOf" in field:
        return " or ".join(_type(option) for option in field["anyOf"])
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    match field.get("type"):
        case "string":
            return _string(field)
        case "integer" | "number":
            return str(field["type"]) + _range(field, "minimum", "maximum")
        case "array":
            return f"list{_range(field, 'minItems', 'maxItems')} of {_type(field['items'])}"
        case "object":
            values = field.get("additionalProperties")
            return f"map to {_type(values)}" if isinstance(values, dict) else "map"
        case None:
            return "any JSON"
        case other:
            return str(other)


def _string(field: Json) -> str:
    if field.get("format") == "date-time":
        return "time"
    if "pattern" in field:
        return f"string `{field['pattern']}`"
    return "string" + _range(field, "minLength", "maxLength")


def _range(field: Json, low: str, high: str) -> str:
    least, most = field.get(low), field.get(high)
    if "exclusiveMinimum" in field:
        return f" (above {field['exclusiveMinimum']})"
    if least is not None and most is not None:
        return f" ({least} to {most})"
    if least is not None:
        return f" (from {least})"
    return "" if most is None else f" (at most {most})"
