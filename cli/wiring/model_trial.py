"""Trial of the observer's model in `memstream doctor`: one real call, which no cheaper check can replace."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from ...adapters.completions.factory import OFFLINE, create_completions
from ...adapters.completions.openai import OpenAICompletions
from ...adapters.ports import Completion
from ...agents.common.structured_output import ParsedItems
from ...agents.common.turn_routing import TurnReading
from ...agents.observer.answer_schema import TASK, AnswerForm, ObservationItem, form_for
from ...agents.observer.batch import BatchTurn, conclude, request_for
from ...agents.observer.prompt import ObservePrompt, ShownTurn
from ...agents.observer.rows import SessionRow
from ...agents.observer.speakers import ShownMessage
from ...memory.facts.routing import route
from ...memory.policies import MemoryPolicy
from ...memory.secrets.secret_filter import SecretFilter
from ...memory.trust.evidence import words_of
from ...memory.trust.verbatim_quote import verbatim_quote
from ...schemas.errors import StageError
from ...schemas.tasks import names_in
from ...schemas.topics import TURNS
from ...schemas.turns import Owner, Turn
from ...schemas.working_set import WorkingSet
from ...streams.log.port import Position, Record
from .checks import Check
from .ports import NoUsage, secret
from .settings import Settings

SAID: Final = "I work at Fixpoint as a nurse. I am allergic to nuts."
TENANT: Final = "doctor"
HELP: Final = "see docs/how-to/model-providers.md"
SHOWN: Final = 3
"""Maximum number of statements in the report."""


async def try_observer(settings: Settings, policy: MemoryPolicy) -> list[Check]:
    """Make one call with the observer's first model. Return no check for the offline model, or if capture is off."""
    model = (names_in(policy.models.observations) or settings.model_names)[0]
    if model == OFFLINE or not policy.capture.enabled:
        return []
    name = f"trial of {model}"
    try:
        made = create_completions(
            model=model,
            api_key=secret(settings.openai_api_key),
            base_url=settings.openai_base_url,
            timeout=settings.model_timeout,
            concurrency=1,
            sink=NoUsage(),
            requests=settings.requests,
        )
    except ValueError as error:
        return [Check(name, False, str(error), "set the missing setting")]
    completions = made.of(TASK)
    assert isinstance(completions, OpenAICompletions)
    prompt = _prompt(policy, form_for(policy))
    began = time.monotonic()
    advice = ""
    try:
        async with asyncio.timeout(2 * settings.model_timeout + 10):  # a repair is a second call
            answer = await completions.complete(request_for(prompt, tenant_id=TENANT))
            seconds = time.monotonic() - began
        if prompt.form.is_full and not _lasting(answer, prompt, policy):
            advice = await _short_form_advice(completions, settings, policy, model)
    except StageError as error:
        return [Check(name, False, str(error), error.remedy or HELP)]
    except TimeoutError:
        return [Check(name, False, "no answer in time", "raise MEMSTREAM_MODEL_TIMEOUT if the model is only slow")]
    finally:
        await made.close()
    answer_format = completions.answer_format(TASK)
    parts = (
        f"answered as {'-' if answer_format is None else answer_format.name.lower()}",
        *(["with these request fields: " + ", ".join(completions.field_names)] if completions.field_names else []),
        _came_back(answer.value, prompt.turns[0]),
        _cost(answer, policy, seconds=seconds),
        *([advice] if advice else []),
    )
    return [Check(name, True, "; ".join(parts))]


def _prompt(policy: MemoryPolicy, form: AnswerForm) -> ObservePrompt:
    turn = ShownTurn(turn_id="trial", occurred_at=datetime.now(UTC), said=(ShownMessage("user", SAID),))
    return ObservePrompt((turn,), WorkingSet(), (), policy.capture, form)


async def _short_form_advice(
    completions: OpenAICompletions, settings: Settings, policy: MemoryPolicy, model: str
) -> str:
    """Try the short form. Return the advice to use it when it yields a statement that quotes the turn, else nothing."""
    prompt = _prompt(policy, form_for(replace(policy, models=replace(policy.models, form="short"))))
    try:
        async with asyncio.timeout(2 * settings.model_timeout + 10):
            answer = await completions.complete(request_for(prompt, tenant_id=TENANT))
    except (StageError, TimeoutError):
        return ""
    lasting = _lasting(answer, prompt, policy)
    if not lasting:
        return ""
    return (
        f"no statement of this answer would become a fact, and {lasting} of the short form would: write "
        f'form = "short" under [models."{model}"]'
    )


def _lasting(answer: Completion[ParsedItems[ObservationItem]], prompt: ObservePrompt, policy: MemoryPolicy) -> int:
    """Return the number of statements of the answer that would become facts."""
    turn = Turn.model_validate(
        {
            **dict.fromkeys(("tenant_id", "user_id", "session_id", "turn_id"), TENANT),
            "messages": [{"role": "user", "content": SAID}],
        }
    )
    batch_turn = BatchTurn(
        turn,
        Owner(scope="user", id=TENANT),
        Record(Position(TURNS.name, 0, 0), b"", b""),
        prompt.turns[0].occurred_at,
        prompt.turns[0],
        TurnReading(),
    )
    secrets = SecretFilter(policy.privacy)
    [observed] = conclude(SessionRow(), [batch_turn], prompt, answer, policy, secrets=secrets).observed
    return sum(route(each, policy).semantic for each in observed.observations)


def _quoted(answer: ParsedItems[ObservationItem], turn: ShownTurn) -> list[ObservationItem]:
    """Return the statements without a quote, and those whose quote is in the turn."""
    return [
        item
        for _, item in answer.items
        if not item.evidence or words_of(verbatim_quote(item.evidence, turn.texts), turn.texts, turn.own_texts)
    ]


def _came_back(answer: ParsedItems[ObservationItem], turn: ShownTurn) -> str:
    items = [item for _, item in answer.items]
    quoted = _quoted(answer, turn)
    if not quoted:
        return (
            f"{len(items) + answer.dropped} statements, none of which quotes the turn: this model may be too small for "
            f"the task ({HELP})"
        )
    shown = ", ".join(f"“{item.content}”" for item in quoted[:SHOWN])
    faults = f"; corrected or dropped: {', '.join(answer.faults)}" if answer.faults else ""
    return f"{len(quoted)} of {len(items) + answer.dropped} statements usable: {shown}{faults}"


def _cost(answer: Completion[ParsedItems[ObservationItem]], policy: MemoryPolicy, *, seconds: float) -> str:
    used = answer.usage
    price = policy.budget.price(answer.model)
    usd = (
        "of unknown price"
        if price is None
        else f"{(used.input_tokens * price.input + used.output_tokens * price.output) / 1e6:.5f} USD"
    )
    calls = "1 call" if used.calls == 1 else f"{used.calls} calls, because the first answer was unusable"
    return f"{calls}, {used.input_tokens} + {used.output_tokens} tokens, {usd}, {seconds:.1f} s"
