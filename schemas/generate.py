"""JSON Schemas of everything that travels: `python -m memstream.schemas.generate [--check]` writes or compares them.

The files under schemas/json are checked in and travel in the wheel; a test fails when they and the code differ. What
we produce is closed (no field that the contract does not have, and every field is there); what producers send (turns,
commands) asks only for the least, and turns stay open. Readers must ignore fields that they do not know: a later minor
version may add some.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic.json_schema import GenerateJsonSchema

from .base import Contract
from .commands import Command, CommandResult, Compact, EpisodesKeep, EpisodesRecord, FactsApply, FlushImportant
from .episodes import EpisodesRecorded
from .facts import Fact, FactUpdated
from .observations import Observed
from .recalled import RecalledItem, RecallTold
from .turns import Turn

FOLDER = Path(__file__).resolve().parent / "json"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Published:
    """A contract that others see. `view` `sent`: as producers send it; `produced`: as we write it."""

    name: str
    contract: type[Contract]
    view: Literal["sent", "produced"]
    about: str


PUBLISHED: tuple[Published, ...] = (
    Published("turn", Turn, "sent", "value on memory.turns"),
    Published("command", Command, "sent", "value on memory.commands and memory.commands.session"),
    Published("facts_apply", FactsApply, "sent", "args of a command of kind facts.apply"),
    Published("episodes_record", EpisodesRecord, "sent", "args of a command of kind episodes.record"),
    Published("episodes_keep", EpisodesKeep, "sent", "args of a command of kind episodes.keep"),
    Published("flush_important", FlushImportant, "sent", "args of a command of kind flush_important"),
    Published("compact", Compact, "sent", "args of a command of kind compact"),
    Published("observed", Observed, "produced", "value on memory.observations"),
    Published("episodes_recorded", EpisodesRecorded, "produced", "value on memory.episodes.recorded"),
    Published("fact", Fact, "produced", "value on memory.facts"),
    Published("fact_updated", FactUpdated, "produced", "value on memory.facts.updated"),
    Published("recalled", RecallTold, "produced", "value on memory.recalled"),
    Published("recalled_item", RecalledItem, "produced", "one item of an answer of recall"),
    Published("command_result", CommandResult, "produced", "value on memory.commands.results"),
)


class _Whole(GenerateJsonSchema):
    """We write every field, those at their defaults too, so readers may rely on them."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return self.mode == "serialization" or super().field_is_required(field, total)


def schema_text(published: Published) -> str:
    """The file's text: JSON Schema 2020-12, two spaces, a line break at the end."""
    mode: Literal["validation", "serialization"] = "validation" if published.view == "sent" else "serialization"
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:memstream:{published.name}:v{VERSION}",
        "$comment": f"{published.about}; written by memstream.schemas.generate",
    } | published.contract.model_json_schema(mode=mode, schema_generator=_Whole)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def wanted() -> dict[str, str]:
    """File name → text."""
    return {f"{published.name}.json": schema_text(published) for published in PUBLISHED}


def differences(folder: Path = FOLDER) -> list[str]:
    """What is missing, stale or too much in `folder`, one line each; empty when all is well."""
    texts = wanted()
    there = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.json"))}
    lines = [f"{name}: missing" for name in texts if name not in there]
    lines += [f"{name}: differs from the code" for name, text in texts.items() if there.get(name, text) != text]
    lines += [f"{name}: no contract has this name" for name in there if name not in texts]
    return lines


def write(folder: Path = FOLDER) -> None:
    texts = wanted()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for path in folder.glob("*.json"):
        if path.name not in texts:
            path.unlink()


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: python -m memstream.schemas.generate [--check]", file=sys.stderr)
        return 2
    if arguments == ["--check"]:
        lines = differences()
        for line in lines:
            print(line, file=sys.stderr)
        if lines:
            print("mend: python -m memstream.schemas.generate", file=sys.stderr)
        return 1 if lines else 0
    write()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
