"""Generated tables of the pages in docs/reference.

On a page, a generated table is between `<!-- generated: NAME -->` and `<!-- end -->`. The rest is written by hand.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import click
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from memstream.api.admission import HttpMetrics
from memstream.api.limits import Limits
from memstream.api.openapi import document
from memstream.api.sign_in.protected_resource import keys_age
from memstream.api.turn_limits import TurnLimitMetrics
from memstream.cli.main import COMMANDS, cli
from memstream.cli.wiring.settings import FOR_TESTS, Settings, variable
from memstream.memory.policies import SLOTS, MemoryPolicy, SlotPolicy
from memstream.recall.recall_events import PublisherMetrics
from memstream.schemas.base import Contract
from memstream.schemas.tools import TOOLS
from memstream.streams.engine.metrics import Metrics
from memstream.tools.audit_topic import AuditMetrics

from . import contract_tables
from .contract_tables import table
from .json_schemas import PUBLISHED
from .openapi import bare_app

FOLDER: Final = Path(__file__).resolve().parents[1] / "reference"
_BLOCK = re.compile(r"<!-- generated: (?P<name>[\w ]+) -->\n.*?<!-- end -->", re.DOTALL)
_PLACEHOLDERS: Final = {"time": "TIME", "integer range": "N", "float range": "X"}
"""Placeholder by type of an option. An option of another type shows its own name."""
Json = dict[str, Any]


# ------------------------------------------------------------------------------------------------ settings
def settings() -> str:
    """Return the table of environment variables. The docstring below a field describes its values."""
    documented = _attribute_docstrings(Settings)
    rows = [
        [variable(name), _value(field.default), documented.get(name, "")]
        for name, field in Settings.model_fields.items()
        if name not in FOR_TESTS
    ]
    return table(("variable", "default", "values"), rows)


def policy() -> str:
    """Return the table of the settings of `[memory]`, from the policies and the docstrings below their fields."""
    return table(("name", "default", "means"), _policy_rows(MemoryPolicy(), ""))


def _policy_rows(part: Any, path: str) -> Iterator[list[str]]:
    documented = _attribute_docstrings(type(part))
    for each in dataclasses.fields(part):
        value = getattr(part, each.name)
        name = f"{path}{each.name}"
        if name == "models":  # documented with the table [models]
            continue
        if name == "slots":
            yield [f"`{name}`", "see [policies](policies.md#slots)", documented.get(each.name, "")]
        elif dataclasses.is_dataclass(value):
            yield from _policy_rows(value, f"{name}.")
        else:
            yield [f"`{name}`", _value(value), documented.get(each.name, "")]


def slots() -> str:
    """Return the table of the slots that memstream defines."""
    rows = [
        [
            f"`{name}`",
            slot.description,
            slot.values,
            slot.category,
            f"{slot.durability}, {slot.importance}",
            f"`{slot.inverse or slot.opposite}`" if slot.inverse or slot.opposite else "–",
        ]
        for name, slot in SLOTS.items()
    ]
    return table(("slot", "is", "values", "category", "durability, importance", "inverse or opposite"), rows)


def slot_settings() -> str:
    """Return the table of the settings of one slot."""
    documented = _attribute_docstrings(SlotPolicy)
    required = dataclasses.MISSING
    rows = [
        [f"`{each.name}`", "required" if each.default is required else _value(each.default), documented[each.name]]
        for each in dataclasses.fields(SlotPolicy)
    ]
    return table(("setting", "default", "means"), rows)


def limits() -> str:
    """Return the table of the limits of one HTTP server."""
    documented = _attribute_docstrings(Limits)
    rows = [
        [f"`{each.name}`", _value(each.default), documented.get(each.name, "")] for each in dataclasses.fields(Limits)
    ]
    return table(("limit", "value", "means"), rows)


def _value(value: Any) -> str:
    if value is None or value in ("", ()):
        return "–"
    if isinstance(value, Mapping):
        return f"`{json.dumps({name: str(each) for name, each in value.items()})}`" if value else "–"
    if isinstance(value, tuple | frozenset | list):
        return f"`{json.dumps(sorted(value) if isinstance(value, frozenset) else list(value), default=str)}`"
    if isinstance(value, bool):
        return str(value).lower()
    return f"`{value}`" if isinstance(value, str | Path) else str(value)


def _attribute_docstrings(owner: type) -> dict[str, str]:
    """Return the docstring below each field, as one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(body, ast.ClassDef)
    documented: dict[str, str] = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            text = ast.literal_eval(after.value)
            documented[field.target.id] = " ".join(inspect.cleandoc(text).split())
    return documented


# ------------------------------------------------------------------------------------------------ commands
def commands() -> str:
    """Return the table of commands with their options."""
    context = click.Context(cli, info_name="memstream")
    rows = []
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        rows += [[f"`{synopsis}`", text] for synopsis, text in _synopses(command, f"memstream {name}")]
    return table(("command", "does"), rows)


def _synopses(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _synopses(inner, f"{path} {name}")
        return
    text = COMMANDS[path.split()[1]] if len(path.split()) == 2 else _first_sentence(command)
    yield " ".join([path, *(_parameter(each) for each in command.params)]), text


def _first_sentence(command: click.Command) -> str:
    text = " ".join((command.help or "").split())
    return text.partition(". ")[0].removesuffix(".") + "."


def _parameter(parameter: click.Parameter) -> str:
    choices = "|".join(parameter.type.choices) if isinstance(parameter.type, click.Choice) else ""
    again = " …" if parameter.multiple or parameter.nargs == -1 else ""
    if isinstance(parameter, click.Argument):
        return (choices or (parameter.name or "").upper()) + again
    option = max(parameter.opts, key=len)
    is_flag = isinstance(parameter, click.Option) and parameter.is_flag
    placeholder = parameter.metavar or choices or _PLACEHOLDERS.get(parameter.type.name) or option.strip("-").upper()
    shown = option if is_flag else f"{option} {placeholder}"
    return (shown if parameter.required else f"[{shown}]") + again


# ------------------------------------------------------------------------------------------------ metrics and routes
def metrics() -> str:
    """Return the table of the metrics of a worker and of `serve`."""
    registry = CollectorRegistry()
    families = [*vars(Metrics(registry)).values(), *vars(HttpMetrics(registry)).values()]
    families.append(TurnLimitMetrics(registry).refusals)
    publisher = PublisherMetrics.on(registry)
    families += [publisher.sent, publisher.dropped]
    trail = AuditMetrics.on(registry)
    families += [trail.sent, trail.dropped, trail.waiting]
    families.append(keys_age(registry))
    rows = [_family(each) for each in families if isinstance(each, MetricWrapperBase)]
    return table(("metric", "type", "labels", "counts"), rows)


def _family(family: MetricWrapperBase) -> list[str]:
    (described,) = family.describe()
    name = described.name + ("_total" if described.type == "counter" else "")
    labels = ", ".join(f"`{label}`" for label in family._labelnames) or "–"
    return [f"`{name}`", described.type, labels, described.documentation]


def routes() -> str:
    """Return the table of the routes of `memstream serve`, from its OpenAPI document."""
    made = document(bare_app())
    rows = [
        [
            f"`{method.upper()} {path}`",
            operation["summary"],
            ", ".join(_inputs(operation, made)) or "–",
            "; ".join(_answers(operation, made)),
        ]
        for path, methods in made["paths"].items()
        for method, operation in methods.items()
    ]
    return table(("route", "does", "takes", "answers"), rows)


def _inputs(operation: Json, made: Json) -> Iterator[str]:
    """Yield query and header parameters, then the fields of the body. A body of turns is described in words."""
    for parameter in operation.get("parameters", ()):
        if parameter["in"] != "path":
            yield f"`{parameter['name']}`"
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "oneOf" in schema:
        yield "a turn, or a list of turns"
    else:
        yield from _names(schema, made)


def _answers(operation: Json, made: Json) -> Iterator[str]:
    """Yield the content of each successful answer: its fields, its record, or its media type."""
    for status, answer in operation["responses"].items():
        if not status.startswith("2"):
            continue
        content = answer.get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        names = list(_names(schema.get("anyOf", [schema])[0], made)) or [f"`{media}`" for media in content]
        yield f"{status}: {', '.join(names)}"


def _names(schema: Json, made: Json) -> Iterator[str]:
    """Yield the fields of an object. For a published record, yield only its name."""
    if "$ref" not in schema:
        return
    record = schema["$ref"].rpartition("/")[2]
    if record in {published.contract.__name__ for published in PUBLISHED}:
        yield f"a `{record}`"
    else:
        yield from (f"`{name}`" for name in made["components"]["schemas"][record]["properties"])


# ------------------------------------------------------------------------------------------------ tools
def tools() -> str:
    """Return the table of agents' tools: arguments, results, effect and guard."""

    def names(contract: type[Contract]) -> str:
        fields = contract.model_fields.items()
        return ", ".join(f"`{name}`" + ("" if field.is_required() else "?") for name, field in fields)

    rows = [
        [
            f"`{each.name}`",
            names(each.args),
            names(each.result),
            each.effect,
            "" if each.guard == "free" else each.guard,
        ]
        for each in TOOLS
    ]
    return table(["tool", "arguments (? optional)", "result", "effect", "guard"], rows)


# ------------------------------------------------------------------------------------------------ pages
TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "topics": contract_tables.topics,
    "access": contract_tables.access,
    "records": contract_tables.records,
    "kinds": contract_tables.kinds,
    "collections": contract_tables.collections,
    "tasks": contract_tables.tasks,
    "settings": settings,
    "policy": policy,
    "slots": slots,
    "slot settings": slot_settings,
    "limits": limits,
    "commands": commands,
    "metrics": metrics,
    "routes": routes,
    "tools": tools,
}
"""Generators of tables by name. Tables of fields (`fields of …`) come from contract_tables.py."""


@cache
def _table(name: str) -> str:
    """Return a table. It depends only on the code, so it is cached."""
    return TABLES[name]()


def filled(page: str) -> str:
    """Return a page's text with its tables generated from the code.

    Raises KeyError or ValueError for an unknown table.
    """
    fields = contract_tables.Fields()

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        text = fields.of(name.removeprefix("fields of ")) if name.startswith("fields of ") else _table(name)
        return f"<!-- generated: {name} -->\n{text}\n<!-- end -->"

    return _BLOCK.sub(block, page)


def differences(folder: Path = FOLDER) -> list[str]:
    """Return the pages whose tables differ from the code, one line each."""
    pages = {page.name: page.read_text("utf-8") for page in sorted(folder.glob("*.md"))}
    return [f"{name}: differs from the code" for name, text in pages.items() if filled(text) != text]


def write(folder: Path = FOLDER) -> None:
    for page in sorted(folder.glob("*.md")):
        page.write_text(filled(page.read_text("utf-8")), "utf-8")
