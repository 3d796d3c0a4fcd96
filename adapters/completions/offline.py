"""The model when there is none: rules that understand simple English sentences, and say nothing about the rest.

It answers from the same prompt text that any model gets and through the same parser, so everything behind it is the
real thing. Its quality is measured on tests/data/offline.jsonl; it is a way to try the pipeline without a key, not a
replacement of a language model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from pydantic import JsonValue

from ...schemas.errors import Poison
from ..ports import Completion, CompletionRequest, Usage, UsageSink
from .offline_consolidator import consolidate
from .offline_observer import observe
from .offline_prompt import read_prompt
from .offline_upkeep import digest, judge, prune, read_pairs, summary

A = TypeVar("A")

NAME: Final = "offline-rules/1"


class OfflineCompletions:
    """`Completions` for the tasks that the stages have; any other is refused by name."""

    def __init__(self, *, sink: UsageSink) -> None:
        self._sink = sink

    @property
    def model(self) -> str:
        return NAME

    @property
    def costs_money(self) -> bool:
        return False

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        """Deterministic: a repair would give the same answer, so what the parser refuses is poison at once."""
        prompt = read_prompt(request.messages)
        answer: JsonValue
        match request.task:
            case "observations":
                answer = {"observations": observe(prompt)}
            case "consolidation":
                answer = {"facts": consolidate(prompt)}
            case "judge":
                answer = {"judgements": judge(read_pairs(request.messages))}
            case "prune":
                answer = {"removals": prune(prompt), "merges": []}
            case "digest":
                answer = {"text": digest(prompt)}
            case "summary":
                answer = {"text": summary(_statements(observe(prompt)))}
            case "insights":  # it infers nothing
                answer = {"insights": []}
            case "procedures":
                answer = {"procedures": []}
            case other:
                raise Poison("refused_by_model", f"{NAME} knows no task {other}: set OPENAI_API_KEY for a real model")
        usage = Usage(calls=1)
        self._sink.record(tenant_id=request.tenant_id, task=request.task, model=NAME, usage=usage)
        try:
            return Completion(value=request.parse(answer), model=NAME, usage=usage)
        except ValueError as error:
            raise Poison("refused_by_model", f"{NAME} gave no usable answer for {request.task}: {error}") from error

    async def close(self) -> None:
        return None


def _statements(observations: Iterable[JsonValue]) -> Iterator[tuple[str, str]]:
    """(subject, content) of what was observed."""
    for each in observations:
        if isinstance(each, dict):
            yield str(each.get("subject") or "user"), str(each.get("content") or "")
