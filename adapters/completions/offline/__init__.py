"""Offline model: rules for plain English as people type it. The rules ignore all other text.

The offline model reads the same prompts as other models, and the same parser reads its answers. Therefore a user can
try the whole pipeline without a key. The offline model does not replace a language model. tests/data/offline.jsonl
measures its quality.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

import structlog
from pydantic import JsonValue

from ....schemas.errors import Poison
from ...ports import Completion, CompletionRequest, Usage, UsageSink
from .consolidator import consolidate
from .observer import Reading, observe, why_silent
from .prompt import read_prompt
from .upkeep import digest, prune, summary

A = TypeVar("A")

__all__ = ["NAME", "OfflineCompletions", "why_silent"]

log = structlog.get_logger(__name__)

NAME: Final = "offline-rules/1"
REPORT_EVERY: Final = 600.0
"""Minimum seconds between two log events with the counts of `_ReadCount`."""


class OfflineCompletions:
    """`Completions` for the tasks of the stages. Any other task raises `Poison`."""

    def __init__(self, *, sink: UsageSink, clock: Callable[[], float] = time.monotonic) -> None:
        self._sink = sink
        self._read = _ReadCount(clock)

    @property
    def model(self) -> str:
        return NAME

    @property
    def costs_money(self) -> bool:
        return False

    @property
    def by_rules(self) -> bool:
        return True

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        """Answer a request. The rules are deterministic, so a repair would give the same answer. Therefore an answer
        that the parser rejects raises `Poison` immediately."""
        prompt = read_prompt(request.messages)
        answer: JsonValue
        match request.task:
            case "observations":
                reading = observe(prompt)
                self._read.add(reading)
                answer = {"observations": reading.observations}
            case "consolidation":
                answer = {"facts": consolidate(prompt)}
            case "judge":  # rules compared the two before
                answer = {"judgements": []}
            case "prune":
                answer = {"removals": prune(prompt), "merges": []}
            case "digest":
                answer = {"text": digest(prompt)}
            case "summary":
                answer = {"text": summary(_statements(observe(prompt).observations))}
            case "evidence":  # the rules do not understand other words than a model's
                answer = {"answers": []}
            case "insights":  # the rules infer nothing
                answer = {"insights": []}
            case "procedures":
                answer = {"procedures": []}
            case other:
                raise Poison("refused_by_model", f"{NAME} knows no task {other}: set OPENAI_API_KEY for a real model")
        usage = Usage(calls=1)
        self._sink.record(tenant_id=request.tenant_id, task=request.task, model=NAME, usage=usage)
        try:
            return Completion(value=request.parse(answer), model=NAME, usage=usage, by_rules=True)
        except ValueError as error:
            raise Poison("refused_by_model", f"{NAME} gave no usable answer for {request.task}: {error}") from error

    async def close(self) -> None:
        self._read.report()


class _ReadCount:
    """Counts of all statements, and of the statements from which the rules read an observation. It logs the counts, but
    no text, at most every `REPORT_EVERY` seconds and on close."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._statements = self._understood = 0
        self._last_report = clock()

    def add(self, reading: Reading) -> None:
        self._statements += reading.statements
        self._understood += reading.read
        if self._clock() - self._last_report >= REPORT_EVERY:
            self.report()

    def report(self) -> None:
        if self._statements:
            log.info(
                "offline_model_read",
                read=self._understood,
                statements=self._statements,
                note=f"offline model read {self._understood} of {self._statements} statements",
            )
        self._statements = self._understood = 0
        self._last_report = self._clock()


def _statements(observations: Iterable[JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield (subject, content) of each observation."""
    for each in observations:
        if isinstance(each, dict):
            yield str(each.get("subject") or "user"), str(each.get("content") or "")
