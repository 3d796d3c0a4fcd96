"""JSON Schemas of every record.

There are two sets. `schemas/json/*.json` is for readers: every object is open, so that records with new fields of a
later minor version are valid. `schemas/json/strict/*.json` is for writers: every object is closed, so that a misspelt
field is an error. Tests check memstream's own records with the strict set. In both sets, a message of a turn may have
the fields of OpenAI's chat messages.

In records that memstream produces, all fields are required. In records from others (turns, commands), only the minimum
is required.

The files are checked in and are part of the wheel. A test fails when they differ from the code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic.json_schema import GenerateJsonSchema

from memstream.schemas.audit import AuditRecord
from memstream.schemas.base import Contract
from memstream.schemas.command_kinds import KINDS, CommandKind
from memstream.schemas.commands import (
    Command,
    CommandResult,
    Compact,
    EpisodesKeep,
    EpisodesRecord,
    FactReview,
    FactsApply,
    FlushImportant,
    SessionEnd,
)
from memstream.schemas.episodes import EpisodesRecorded
from memstream.schemas.erasures import ErasureMarker, ErasureReceipt, OwnerErase, SessionErase
from memstream.schemas.export import ExportLine
from memstream.schemas.facts import Fact, FactUpdated
from memstream.schemas.observations import Observed
from memstream.schemas.policies import TenantPolicy
from memstream.schemas.prospective import TaskDue
from memstream.schemas.recall import RecalledItem, RecallReport
from memstream.schemas.turns import Turn

FOLDER = Path(__file__).resolve().parents[2] / "schemas" / "json"
STRICT = "strict"
"""Name of the closed set and of its folder within `FOLDER`."""
VERSION = 1


@dataclass(frozen=True, slots=True)
class Published:
    """A contract with a published schema. `view` is `sent` for records from producers, `produced` for records from
    memstream."""

    name: str
    contract: type[Contract]
    view: Literal["sent", "produced"]
    about: str


def _edits() -> Iterator[Published]:
    """Yield the arguments and results of manual edits, each contract once."""
    kinds = [kind for kind in KINDS if kind.result is not None]
    sides: tuple[tuple[Literal["sent", "produced"], str, Callable[[CommandKind], type[Contract] | None]], ...] = (
        ("sent", "args of a command of kind", lambda kind: kind.args),
        ("produced", "result of a command of kind", lambda kind: kind.result),
    )
    for view, about, contract_of in sides:
        by_contract: dict[type[Contract], list[str]] = {}
        for kind in kinds:
            contract = contract_of(kind)
            assert contract is not None  # an edit has args and a result
            names = by_contract.setdefault(contract, [])
            if kind.name not in names:
                names.append(kind.name)
        for contract, names in by_contract.items():
            yield Published(file_name(contract), contract, view, f"{about} {_listed(names)}")


def file_name(contract: type[Contract]) -> str:
    """Return the name of a contract's file: `fact_remember` for FactRemember."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", contract.__name__).lower()


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


PUBLISHED: tuple[Published, ...] = (
    Published("turn", Turn, "sent", "value on memory.turns"),
    Published("command", Command, "sent", "value on memory.commands and memory.commands.session"),
    Published("facts_apply", FactsApply, "sent", "args of a command of kind facts.apply"),
    Published("fact_review", FactReview, "sent", "args of a command of kind facts.approve or facts.reject"),
    Published("episodes_record", EpisodesRecord, "sent", "args of a command of kind episodes.record"),
    Published("episodes_keep", EpisodesKeep, "sent", "args of a command of kind episodes.keep"),
    Published("session_end", SessionEnd, "sent", "args of a command of kind sessions.end"),
    Published("flush_important", FlushImportant, "sent", "args of a command of kind flush_important"),
    Published("compact", Compact, "sent", "args of a command of kind compact"),
    Published("observed", Observed, "produced", "value on memory.observations"),
    Published("episodes_recorded", EpisodesRecorded, "produced", "value on memory.episodes.recorded"),
    Published("fact", Fact, "produced", "value on memory.facts"),
    Published("fact_updated", FactUpdated, "produced", "value on memory.facts.updated"),
    Published("task_due", TaskDue, "produced", "value on memory.tasks.due"),
    Published("recalled", RecallReport, "produced", "value on memory.recalled"),
    Published("recalled_item", RecalledItem, "produced", "one item of an answer of recall"),
    Published("command_result", CommandResult, "produced", "value on memory.commands.results"),
    Published("tenant_policy", TenantPolicy, "sent", "value on memory.policies"),
    Published("erasure_marker", ErasureMarker, "produced", "value on memory.erasures with a key user/…"),
    Published("erasure_receipt", ErasureReceipt, "produced", "value on memory.erasures with a key receipt/…"),
    Published("session_erase", SessionErase, "sent", "args of a command of kind sessions.erase"),
    Published("owner_erase", OwnerErase, "sent", "args of a command of kind owners.erase or upkeep.erase"),
    Published("audit_record", AuditRecord, "produced", "value on memory.audit"),
    Published("export_line", ExportLine, "produced", "one line of an export"),
    *_edits(),
)


class _AllFieldsRequired(GenerateJsonSchema):
    """Schema generator that makes every produced field required: memstream writes all fields, including defaults."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return self.mode == "serialization" or super().field_is_required(field, total)


def _with_objects(schema: Any, *, open_: bool) -> Any:
    """Return the schema with each object that has named properties open or closed. Free JSON maps stay unchanged."""
    if isinstance(schema, list):
        return [_with_objects(item, open_=open_) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {name: _with_objects(item, open_=open_) for name, item in schema.items()}
    return result | {"additionalProperties": open_} if _is_object(result) else result


def _is_object(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "object" and isinstance(schema.get("properties"), dict)


def schema_of(published: Published, *, strict: bool = False) -> dict[str, Any]:
    """Return the JSON Schema 2020-12 of one contract."""
    mode: Literal["validation", "serialization"] = "validation" if published.view == "sent" else "serialization"
    schema: dict[str, Any] = published.contract.model_json_schema(mode=mode, schema_generator=_AllFieldsRequired)
    schema = _with_objects(_with_openai_fields(schema) if strict else schema, open_=not strict)
    use = "for writers: closed" if strict else "for readers: open"
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:memstream:{published.name}:v{VERSION}" + (f":{STRICT}" if strict else ""),
        "$comment": f"{published.about}; {use}; written from the code",
        **schema,
    }


OPENAI_FIELDS = {
    "TurnMessage": (
        "tool_calls",
        "tool_call_id",
        "function_call",
        "refusal",
        "reasoning_content",
        "audio",
        "annotations",
    ),
    "ContentPart": ("image_url", "input_audio", "file", "refusal"),
}
"""Fields of OpenAI's chat messages that memstream stores but does not read. The strict schemas allow them."""


def _with_openai_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """Add the fields of OpenAI's messages and content parts to the schema, with any value."""
    named = {
        name: part | {"properties": part["properties"] | {field: {} for field in OPENAI_FIELDS.get(name, ())}}
        if "properties" in part
        else part
        for name, part in schema.get("$defs", {}).items()
    }
    return schema | {"$defs": named} if named else schema


def _text(schema: dict[str, Any]) -> str:
    """Return the text of a schema file: two spaces of indentation, a line break at the end."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def expected_files() -> dict[str, str]:
    """Return the text of each file in both sets, by its path within the folder."""
    readers = {f"{each.name}.json": _text(schema_of(each)) for each in PUBLISHED}
    writers = {f"{STRICT}/{each.name}.json": _text(schema_of(each, strict=True)) for each in PUBLISHED}
    return readers | writers


def _files_in(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.json"))}


def differences(folder: Path = FOLDER) -> list[str]:
    """Return missing, stale and unexpected files in `folder`, one line each; empty when folder and code agree."""
    texts = expected_files()
    there = {name: path.read_text(encoding="utf-8") for name, path in _files_in(folder).items()}
    lines = [f"{name}: missing" for name in texts if name not in there]
    lines += [f"{name}: differs from the code" for name, text in texts.items() if there.get(name, text) != text]
    lines += [f"{name}: no contract has this name" for name in there if name not in texts]
    return lines


def write(folder: Path = FOLDER) -> None:
    texts = expected_files()
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name, path in _files_in(folder).items():
        if name not in texts:
            path.unlink()
