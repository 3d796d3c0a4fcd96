"""Model requests as the agents build them, for tests without an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from memstream.adapters.ports import CompletionRequest, Message, Usage

Json = dict[str, JsonValue]
SYSTEM = "You take notes for an assistant's memory."


@dataclass
class Ledger:
    """A `UsageSink` that keeps every record."""

    entries: list[tuple[str, str, str, Usage]] = field(default_factory=list)

    def record(self, *, tenant_id: str, task: str, model: str, usage: Usage) -> None:
        self.entries.append((tenant_id, task, model, usage))

    @property
    def calls(self) -> int:
        return sum(usage.calls for *_, usage in self.entries)


def parse_list(name: str) -> Callable[[JsonValue], list[Json]]:
    """Return a parser of the outer shape `{name: [objects]}`."""

    def parse(value: JsonValue) -> list[Json]:
        if not isinstance(value, dict) or not isinstance(value.get(name), list):
            raise ValueError(f'the answer has no list "{name}"')
        items = value[name]
        assert isinstance(items, list)
        return [item for item in items if isinstance(item, dict)]

    return parse


def strict_list(name: str) -> Json:
    return {
        "type": "object",
        "properties": {name: {"type": "array", "items": {"type": "object"}}},
        "required": [name],
        "additionalProperties": False,
    }


def observe(
    *turns: str,
    known: Sequence[tuple[str, str]] = (),
    context: Sequence[str] = (),
    tenant_id: str = "acme",
) -> CompletionRequest[list[Json]]:
    """Build an observation request. `turns` are the texts of t1, t2 …; `known` are working entries as (subject,
    content).
    """
    earlier = [f"[c{place}] {text}" for place, text in enumerate(context, 1)]
    shown = [*_headed("w", known), *(["## user"] if earlier else []), *earlier]
    texts = [line for place, text in enumerate(turns, 1) for line in (f"[t{place}]", text)]
    return _request("observations", ["Working set", *shown, "Turns", *texts], tenant_id)


def consolidate(
    *, episodes: Sequence[tuple[str, str]], facts: Sequence[tuple[str, str]] = (), tenant_id: str = "acme"
) -> CompletionRequest[list[Json]]:
    lines = ["Episodes", *_headed("e", episodes), "Known facts", *_headed("f", facts)]
    return _request("consolidation", lines, tenant_id)


def _request(task: str, lines: Sequence[str], tenant_id: str) -> CompletionRequest[list[Json]]:
    name = "observations" if task == "observations" else "facts"
    return CompletionRequest(
        task=task,
        tenant_id=tenant_id,
        messages=(Message("system", SYSTEM), Message("user", "\n".join(lines))),
        json_schema=strict_list(name),
        parse=parse_list(name),
    )


def _headed(letter: str, shown: Sequence[tuple[str, str]]) -> list[str]:
    """Number the entries under a heading per subject."""
    lines: dict[str, list[str]] = {}
    for place, (subject, content) in enumerate(shown, 1):
        lines.setdefault(subject, []).append(f"[{letter}{place}] {content}")
    return [line for subject, items in lines.items() for line in (f"## {subject}", *items)]
