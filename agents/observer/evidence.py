"""Evidence of the items of an answer: words first, then one blind question about what words cannot decide.

`confirm` calls the model, once for all items of an answer. All other functions are pure. The answer of the blind
question becomes part of the outcome, as the answer with the observations does: after a crash between the two calls,
both are asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ...adapters.ports import Completion, CompletionRequest, Completions, Usage
from ...memory.language.clean_text import clean_value
from ...memory.language.locales import locales
from ...memory.policies import MemoryPolicy
from ...memory.secrets.secret_filter import SecretFilter
from ...memory.trust.clauses import states
from ...memory.trust.evidence import TRUST_ORDER, WeighedEvidence, judge_evidence
from ...memory.trust.forget_requests import is_forget_request
from ...memory.trust.rendered_text import observed_rule
from ...memory.trust.verbatim_quote import verbatim_quote
from ...schemas.errors import OverBudget, Poison
from ...schemas.turns import Role
from ...streams.engine.retry import Calls
from ..common.model_call import model_breaker
from ..common.structured_output import ParsedItems
from .answer_schema import ObservationItem
from .evidence_prompt import SCHEMA, TASK, EvidenceItem, EvidencePrompt, Question, parse
from .item_protection import without_secrets
from .prompt import ObservePrompt
from .speakers import USER, spoken_in, subject_said

ASKED_MAX: Final = 40
"""Maximum number of statements in one blind question. Further ones stay unconfirmed."""
Answer = Completion[ParsedItems[ObservationItem]]


@dataclass(frozen=True, slots=True)
class BlindVerdict:
    """The result of the blind question for one item of the answer."""

    said: str
    """`yes`, `partly`, `no`, or `unknown` when there is no answer about the item."""
    content: str | None = None
    """The part of the statement that the speaker says, for `partly`."""


Verdicts = Mapping[int, BlindVerdict]
"""The verdicts by the place of the item in the answer. An item without a verdict is decided by words."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The answer with the tokens of the blind question, the verdicts, and the names of metrics to count."""

    answer: Answer | None
    verdicts: Verdicts = field(default_factory=dict)
    counted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """An item, and the role that it is attributed to. Without a role the item is dropped.

    `reason` is the name of a metric to count. An unconfirmed item is the user's word only if somebody confirms it.
    """

    item: ObservationItem
    role: Role | None
    reason: str | None = None
    unconfirmed: bool = False


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """An item with its place in the answer, and the short id of its turn."""

    place: int
    turn: str
    item: ObservationItem


def placed_items(prompt: ObservePrompt, answer: Answer, counted: list[str]) -> Iterator[PlacedItem]:
    """Yield the items that belong to a shown turn, with repaired quotes. Add names of metrics to `counted`."""
    for place, item in answer.value.items:
        name = item.turn or "t1"
        if len(prompt.turns) == 1 and name != "t1":  # there is only one turn
            counted.append("unknown_id")
            name = "t1"
        turn = prompt.turn_ids.get(name) if item.turn or len(prompt.turns) == 1 else None
        if turn is None:
            counted.append("unknown_turn")
            continue
        yield PlacedItem(place, name, item.model_copy(update={"evidence": verbatim_quote(item.evidence, turn.texts)}))


def judged(prompt: ObservePrompt, placed: PlacedItem, policy: MemoryPolicy, verdict: BlindVerdict | None) -> JudgedItem:
    """Return an item with the role that it is attributed to.

    An item of the working-only form has no quote. It is attributed to the most trusted shown role.
    """
    item = placed.item
    if not item.evidence:
        said = {each.role for each in prompt.turn_ids[placed.turn].said}
        return JudgedItem(item, next((role for role in TRUST_ORDER if role in said), None))
    weighed = _weighed(prompt, placed, policy)
    if verdict is None or weighed.asks is None:
        return JudgedItem(item, weighed.by_words.role, weighed.by_words.name)
    if verdict.said == "yes":
        return JudgedItem(item, USER)
    if verdict.said == "no":
        denied = weighed.denied
        role = None if denied is None else denied.role
        return JudgedItem(item, role, "unsaid" if denied is None or role is None else denied.name)
    if verdict.content is not None and states(verdict.content, _about(prompt, placed), weighed.asks.said):
        return JudgedItem(item.model_copy(update={"content": verdict.content}), USER, "reworded")
    return JudgedItem(item, USER, "unconfirmed", unconfirmed=True)


def _weighed(prompt: ObservePrompt, placed: PlacedItem, policy: MemoryPolicy) -> WeighedEvidence:
    turn, item = prompt.turn_ids[placed.turn], placed.item
    return judge_evidence(
        item.evidence,
        item.content,
        subject=item.subject,
        shown=turn.texts,
        messages=turn.own_texts,
        earlier=prompt.texts_before(placed.turn),
        packs=locales(policy.conflict.locale),
        of_speaker=_about(prompt, placed) == USER,
        closes=_closes(prompt, item),
    )


def _about(prompt: ObservePrompt, placed: PlacedItem) -> str:
    """Return the subject of the statement; `user` for the speaker of the quote."""
    turn, item = prompt.turn_ids[placed.turn], placed.item
    spoken = spoken_in(item.evidence, USER, turn.own_messages, turn.own_texts)
    of_speaker = any(subject_said(item.subject, each.speaker) == each.speaker for each in spoken)
    return USER if of_speaker else item.subject


def _closes(prompt: ObservePrompt, item: ObservationItem) -> str | None:
    """Return the text of the statement that the item replaces; "" when the text is unknown."""
    entry = None if item.replaces is None else prompt.entries.get(item.replaces)
    if entry is not None:
        return entry.content
    return "" if item.is_correction else None


# ------------------------------------------------------------------------------------------------ the blind question
async def confirm(
    prompt: ObservePrompt,
    answer: Answer | None,
    policy: MemoryPolicy,
    *,
    tenant_id: str,
    user_id: str,
    secrets: SecretFilter,
    completions: Completions,
    calls: Calls,
    patience: float,
) -> Confirmation:
    """Ask a model about the items whose evidence words cannot decide. Raises Transient.

    When the budget is spent, or the answer is unusable, these items stay unconfirmed.
    """
    asked = _questions(prompt, answer, policy, secrets)
    if answer is None or not asked:
        return Confirmation(answer)
    shown = tuple(dict.fromkeys(asked.values()))[:ASKED_MAX]
    blind = EvidencePrompt(shown)
    request = CompletionRequest(
        task=TASK,
        tenant_id=tenant_id,
        messages=blind.messages(),
        json_schema=SCHEMA,
        parse=lambda value: parse(secrets.value(clean_value(value)).value),
    )
    try:
        found = await calls.call(
            model_breaker(tenant_id),
            lambda: completions.complete(request),
            give_up_after=patience,
            tentative=True,  # the turn is observed in any case
            user=user_id,
        )
    except OverBudget:
        return Confirmation(answer, _verdicts(asked, {}), ("evidence_paused",) * len(asked))
    except Poison:
        return Confirmation(answer, _verdicts(asked, {}), ("evidence_unanswered",) * len(asked))
    said = {blind.questions[each.id]: each for _, each in found.value.items if each.id in blind.questions}
    verdicts = _verdicts(asked, said)
    unanswered = sum(each.said == "unknown" for each in verdicts.values())
    return Confirmation(
        replace(answer, usage=_sum(answer.usage, found.usage)),
        verdicts,
        ("evidence_asked",) * len(asked) + ("evidence_unanswered",) * unanswered,
    )


def _questions(
    prompt: ObservePrompt, answer: Answer | None, policy: MemoryPolicy, secrets: SecretFilter
) -> dict[int, Question]:
    """Return the questions by the place of the item in the answer.

    There are none about requests to forget, and about instructions to the assistant, which no evidence makes knowledge.
    """
    answer = without_secrets(answer, secrets)
    if answer is None or answer.by_rules or policy.evidence.check == "words":
        return {}
    found: dict[int, Question] = {}
    for each in placed_items(prompt, answer, []):
        item, turn = each.item, prompt.turn_ids[each.turn]
        if not item.evidence or is_forget_request(item.evidence, turn.own_texts):
            continue
        asks = _weighed(prompt, each, policy).asks
        if asks is not None and observed_rule(item.subject, item.content, USER) is None:
            found[each.place] = Question(item.content, _about(prompt, each), asks)
    return found


def _verdicts(asked: Mapping[int, Question], said: Mapping[Question, EvidenceItem]) -> Verdicts:
    return {place: _verdict(said.get(question)) for place, question in asked.items()}


def _verdict(item: EvidenceItem | None) -> BlindVerdict:
    if item is None:
        return BlindVerdict("unknown")
    return BlindVerdict(item.said, item.content if item.said == "partly" else None)


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        calls=one.calls + other.calls,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
    )
