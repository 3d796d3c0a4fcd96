"""Context for a prompt: framed text from memory within a token limit.

One recall reads the tiers of the enabled sections; the profile, the digest, the session's blocks and the due tasks
(held_records.py) are read in parallel. memory/recall/context.py then selects and renders. When a preset finds no fact
for the cue, a second recall reads the most important memories, so that a new session of a known user has a context.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, get_args

from ..adapters.ports import VectorStore
from ..memory.language.identification import pack_of
from ..memory.language.locales import locales
from ..memory.policies import MemoryPolicy
from ..memory.policies.recall import LIMIT_MAX, RankingProfile
from ..memory.recall.context import (
    DEFAULT_SECTIONS,
    FULL_SECTIONS,
    SMALL_SECTIONS,
    ContextItem,
    ContextPolicy,
    ContextValue,
    Memories,
    QuotedMessage,
    RenderedContext,
    Section,
    UnshownMemory,
    WorkingBlock,
    render,
    tokens,
)
from ..memory.recall.context_lines import USER
from ..memory.recall.cue_fit import FitText, fits
from ..memory.recall.prompt_framing import MARK_LENGTH
from ..memory.recall.said_before import speaker_of, unstated_passage
from ..memory.recall.selection import share
from ..memory.tenant_policies import TenantPolicies
from ..schemas.digests import Digest
from ..schemas.errors import Fatal
from ..schemas.observations import Category
from ..schemas.profile import Profile, ProfileValue
from ..schemas.recall import Tier
from ..schemas.said_at import zone_named
from ..schemas.slots import OTHER
from ..schemas.turns import Owner, Sensitivity
from .deadline import DeadlineReads, UnansweredPart
from .filters import SessionTurn
from .held_records import owner_blocks, session_blocks, tasks_to_do
from .profile import ProfileReader, ProfileRequest
from .recall_events import NullRecallPublisher, RecallPublisher, answered
from .record_conditions import NO_CONDITIONS, RecordConditions
from .record_reader import RecordReader
from .request import ReadSession, RecallRequest
from .service import RecalledMemory, RecallPort, RecallResult
from .slots import SlotSelection
from .stated_turns import statements_of

Switch = Literal["tasks", "blocks", "profile", "digest", "semantic", "working", "episodic", "turns", "recall"]
"""Names of the sections. `recall` is not a section: it adds the tool `recall` to the answer."""
Preset = Literal["default", "full", "small"]
PRESETS: Mapping[Preset, frozenset[Switch]] = {
    "default": frozenset((*DEFAULT_SECTIONS, "recall")),
    "full": frozenset((*FULL_SECTIONS, "recall")),
    "small": frozenset((*SMALL_SECTIONS, "recall")),
}
FACT_SECTIONS: frozenset[Switch] = frozenset(("profile", "semantic"))
"""The sections that contain only facts."""
RECALLED_SECTIONS: frozenset[Switch] = frozenset(("semantic", "episodic", "turns"))
"""The sections whose records a recall finds by conditions."""
TIERS_OF_SECTIONS: tuple[Tier, ...] = ("semantic", "working", "episodic")
INSTEAD_TIERS: tuple[Tier, ...] = ("semantic", "episodic")
"""The tiers of the second recall, which has no cue. It runs when the first recall finds no fact."""
MESSAGES_READ = 20
"""Number of the best messages of which a context shows passages."""
NEAR_MESSAGES = 5
"""Number of the messages nearest in meaning that are shown without a word of the cue."""
FRESH = timedelta(days=30)
"""Age up to which a context does not say when a fact was last confirmed."""
EPISODES_INSTEAD = 10
"""Maximum number of episodes that replace missing facts."""
TOKENS_DEFAULT = 2_000
TOKENS_MAX = 32_000
DIGEST_PATIENCE = 2.0
"""Seconds that a context waits for the profile, the digest, blocks and tasks."""
DRAWS = 8
"""Maximum number of boundary marks to draw until one mark does not occur in the memories. A mark has 64 random bits and
practically never occurs there. Reaching the maximum means that the source of random bits is broken."""


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """The parameters of one context. Tenant, owner and session come from the caller's credential, never from the cue.

    Raises ValueError with the name of an invalid parameter.
    """

    tenant_id: str
    owner: Owner
    session: ReadSession | None = None
    """The session whose working set is shown, or None for no working set."""
    groups: tuple[str, ...] = ()
    asked_by: str = ""
    """The name of the caller, as in `RecallRequest`."""
    cue: str | None = None
    """The topic of the prompt, or None to show the most important memories."""
    max_tokens: int = TOKENS_DEFAULT
    switches: frozenset[Switch] = field(default=PRESETS["default"])
    by_preset: bool = True
    """True when a preset chose the switches. Then the context contains both facts and digest only if the digest adds
    information, and episodes replace missing facts. When False, exactly the sections in `switches` are shown."""
    time_zone: str = "UTC"
    """The user's time zone as an IANA name, used for days and months."""
    ceiling: Sensitivity = "internal"
    """The highest sensitivity that is shown. `secret` requires a caller who may read secret memory."""
    as_of: datetime | None = None
    known_at: datetime | None = None
    min_score: float = 0.0
    """The lowest score of a recalled item, as in `RecallRequest`. Above 0, nothing replaces missing facts."""
    profile: RankingProfile | None = None
    """The ranking profile instead of the policy's."""
    explain: bool = False
    """True for a person who looks at the context: the read publishes no recall event."""
    subject: str | None = None
    category: Category | None = None
    conditions: RecordConditions = NO_CONDITIONS
    """The subject, the category and the conditions of the recalled records, as in `RecallRequest`. With one of them,
    use the switches that `recalled_switches` returns; nothing replaces missing facts."""
    slots: SlotSelection | None = None
    """The slots of the facts to show, or None for every fact. With slots, use the switches that `switches_with_slots`
    returns."""

    def __post_init__(self) -> None:
        if not 1 <= self.max_tokens <= TOKENS_MAX:
            raise ValueError(f"max_tokens must be 1 to {TOKENS_MAX}, not {self.max_tokens}")
        unknown = self.switches - set(get_args(Switch))
        if unknown:
            raise ValueError(f"unknown section {', '.join(sorted(unknown))}; known: {', '.join(get_args(Switch))}")
        zone_named(self.time_zone)
        self.recall_request(TIERS_OF_SECTIONS)

    @property
    def is_limited(self) -> bool:
        """True when the recalled records must have a subject, a category or other conditions."""
        return self.subject is not None or self.category is not None or bool(self.conditions)

    @property
    def sections(self) -> frozenset[Section]:
        return frozenset(section for section in get_args(Section) if section in self.switches)

    def recall_request(self, tiers: tuple[Tier, ...]) -> RecallRequest:
        return RecallRequest(
            tenant_id=self.tenant_id,
            owner=self.owner,
            session=self.session,
            groups=self.groups,
            cue=self.cue,
            limit=LIMIT_MAX,
            tiers=tiers,
            ceiling=self.ceiling,
            as_of=self.as_of,
            known_at=self.known_at,
            min_score=self.min_score,
            subject=self.subject,
            category=self.category,
            conditions=self.conditions,
            slots=self.slots,
            zone=zone_named(self.time_zone),
            settled=True,
            profile=self.profile,
            explain=self.explain,
            asked_by=self.asked_by,
        )

    def profile_request(self) -> ProfileRequest:
        return ProfileRequest(
            tenant_id=self.tenant_id,
            owner=self.owner,
            slots=() if self.slots is None else tuple(name for name in self.slots.names if name != OTHER),
            ceiling=self.ceiling,
            as_of=self.as_of,
            known_at=self.known_at,
        )


def recalled_switches(switches: frozenset[Switch]) -> frozenset[Switch]:
    """Return the switches of the sections that a recall fills. Tasks, blocks, the profile and the digest cannot be
    filtered by conditions, so a context with conditions leaves them out.

    Raises ValueError when the request leaves out these sections.
    """
    if not switches & RECALLED_SECTIONS:
        raise ValueError(f"these conditions need one of the sections {', '.join(sorted(RECALLED_SECTIONS))}")
    return switches & (RECALLED_SECTIONS | {"recall"})


def switches_with_slots(switches: frozenset[Switch], slots: SlotSelection | None) -> frozenset[Switch]:
    """Return the switches to use. Only facts have slots, so a selection by slot shows only sections of facts.

    Raises ValueError when the request leaves out these sections.
    """
    if slots is None:
        return switches
    if not switches & FACT_SECTIONS:
        raise ValueError("only facts have slots: include the section semantic or profile")
    return switches & (FACT_SECTIONS | {"recall"})


@dataclass(frozen=True, slots=True)
class PromptContext:
    """A rendered context. `text` is empty when nothing is shown."""

    text: str
    tokens: int
    """Estimated number of tokens; the model's tokenizer may differ."""
    shown: Mapping[Section, tuple[str, ...]]
    """Ids by section, in the order of the text, including enabled but empty sections."""
    tools: tuple[Literal["recall"], ...]
    missing: tuple[UnansweredPart, ...] = ()
    """Parts of memory that did not answer."""
    silent: bool = False
    """True when every part of memory that was read failed."""
    unshown: tuple[UnshownMemory, ...] = ()
    """Memories that were read but are not in the text, with the reasons."""
    section_tokens: Mapping[Section, int] = field(default_factory=dict)
    """Tokens of each section of the text, with its headings and without the frame."""
    pinned: tuple[str, ...] = ()
    """Ids of the facts that are in the text because a person pinned them."""


def new_mark() -> str:
    return secrets.token_hex(MARK_LENGTH // 2)


class ContextService:
    """The context service. One instance serves concurrent requests."""

    def __init__(
        self,
        *,
        recall: RecallPort,
        digests: RecordReader | None = None,
        held: RecordReader | None = None,
        store: VectorStore | None = None,
        meanings: bool = False,
        profiles: ProfileReader | None = None,
        policies: TenantPolicies | None = None,
        publisher: RecallPublisher | None = None,
        mark: Callable[[], str] = new_mark,
        count: Callable[[str], int] = tokens,
    ) -> None:
        """`digests` reads the digest, `held` reads blocks and tasks, `profiles` reads the profile, and `store` has the
        statements of the messages' turns; None disables them. `meanings`: the embedder compares meanings, not words.
        `publisher` publishes the recalled items that are shown, not all read items. `mark` draws the boundary mark of a
        context. `count` counts tokens like the caller's model."""
        self._recall = recall
        self._digests = digests
        self._held = held
        self._store = store
        self._meanings = meanings
        self._profiles = profiles
        self._policies = policies or TenantPolicies(MemoryPolicy())
        self._publisher: RecallPublisher = publisher or NullRecallPublisher()
        self._mark = mark
        self._count = count

    async def context(self, request: ContextRequest, *, now: datetime) -> PromptContext:
        """Return the context. Its `missing` lists slow and failed parts. Raises Fatal when an invariant is broken."""
        parts = DeadlineReads(patience=DIGEST_PATIENCE)
        tiers = tuple(tier for tier in TIERS_OF_SECTIONS if tier in request.switches)
        digest, profile, blocks, tasks, (recalled, pinned), (said, stated) = await asyncio.gather(
            self._digest(request, parts),
            self._profile(request, parts, now),
            self._blocks(request, parts),
            self._tasks(request, parts),
            asyncio.gather(self._recalled(request, tiers, now), self._pinned(request, now)),
            self._messages(request, parts, now),
        )
        sections = request.sections
        if self._finds_nothing(request, digest, recalled):
            recalled = _joined(recalled, await self._recalled(replace(request, cue=None), INSTEAD_TIERS, now))
            sections |= {"episodic"} if request.slots is None else frozenset()
        policy = ContextPolicy(
            max_tokens=request.max_tokens,
            sections=sections,
            ceiling=request.ceiling,
            zone=zone_named(request.time_zone),
            spare_digest=request.by_preset and request.cue is not None,
        )
        digested = await self._digested(request, digest, now)
        by_pin = {each.item.id for each in pinned.items}
        memories = _memories(digest, digested, recalled, tiers, now)
        memories = replace(
            memories,
            pinned=_items(pinned.items, now),
            facts=[each for each in memories.facts if each.id not in by_pin],
            blocks=blocks,
            tasks=tasks,
            profile=profile,
            said=self._said(request, said, stated, recalled),
        )
        rendered = self._rendered(memories, policy)
        if (shown := {each.id for each in rendered.shown}) and not request.explain:
            items = (each for each in (*recalled.items, *said.items) if each.item.id in shown)
            self._publisher.publish(answered(request.recall_request(TIERS_OF_SECTIONS), items, now))
        read = (recalled, pinned, digested, said)
        missing = tuple(dict.fromkeys((*(part for each in read for part in each.missing), *parts.missing)))
        return PromptContext(
            text=rendered.text,
            tokens=self._count(rendered.text),
            shown={
                section: ids
                for section in get_args(Section)
                if section in sections
                if (ids := _shown(rendered, section)) or section != "tasks"
            },
            tools=("recall",) if "recall" in request.switches else (),
            missing=missing,
            silent=(recalled.silent or not tiers) and not parts.answered and bool(missing),
            unshown=rendered.unshown,
            section_tokens=rendered.section_tokens,
            pinned=tuple(each.id for each in rendered.shown if each.id in by_pin and each.section == "semantic"),
        )

    async def _messages(
        self, request: ContextRequest, parts: DeadlineReads, now: datetime
    ) -> tuple[RecallResult, Mapping[SessionTurn, Sequence[str]]]:
        """Return the best messages for the cue, and the statements that memory has of their turns.

        Without these statements no message is shown, because it may say what was corrected or forgotten since.
        """
        nothing = RecallResult((), ())
        store, cue = self._store, request.cue
        if store is None or "turns" not in request.switches or cue is None or not cue.strip() or request.slots:
            return nothing, {}
        asked = replace(request.recall_request(("turns",)), limit=MESSAGES_READ)
        found = await self._recall.recall(asked, now=now)
        turns = {turn for each in found.items if (turn := _turn_of(each)) is not None}
        if not turns:
            return found, {}
        stated = await parts.ask(
            "turns.stated", lambda: statements_of(store, request.tenant_id, asked.owner_keys, turns)
        )
        return (found, stated) if stated is not None else (replace(found, items=()), {})

    def _said(
        self,
        request: ContextRequest,
        found: RecallResult,
        stated: Mapping[SessionTurn, Sequence[str]],
        recalled: RecallResult,
    ) -> tuple[QuotedMessage, ...]:
        """Return the passages of the messages that neither memory nor the working set states.

        A passage has a word of the cue, or its message is one of the nearest in meaning. A message is also found by the
        words of its neighbours, which the context does not show.
        """
        locale = self._policies.of(request.tenant_id).conflict.locale
        packs = locales(locale)
        focus = [each.item.content for each in recalled.items if each.item.tier == "working"]
        said: list[tuple[QuotedMessage, bool]] = []
        for each in found.items:
            turn = _turn_of(each)
            if turn is None or each.at is None or each.role == "system":
                continue
            known = (*stated.get(turn, ()), *focus)
            role = each.role or USER
            passage = unstated_passage(each.item.content, known, role=role, cue=request.cue or "", packs=packs)
            if passage:
                speaker = speaker_of(role, each.name)
                message = QuotedMessage(passage, speaker, each.at, each.sensitivity, each.item.id)
                said.append((message, self._meanings and _is_near(each)))
        cue = request.cue or ""
        fit = fits(cue, [FitText(message.passage) for message, _ in said], pack_of(cue, locale), meanings=False)
        return tuple(message for (message, near), its in zip(said, fit, strict=True) if near or its > 0)

    async def _digested(self, request: ContextRequest, digest: Digest | None, now: datetime) -> RecallResult:
        """Return the owner's facts when the digest is shown without the facts section, otherwise nothing.

        The digest already contains these facts, so the working entries and episodes in the text must not repeat them.
        """
        if digest is None or "semantic" in request.switches or not request.sections & {"working", "episodic"}:
            return RecallResult((), ())
        return await self._recalled(replace(request, cue=None), ("semantic",), now)

    def _finds_nothing(self, request: ContextRequest, digest: Digest | None, recalled: RecallResult) -> bool:
        """Return whether a preset with facts has neither a fact nor a digest, although the fact searches answered.

        With a minimum score or with conditions, missing facts are intended, and the result is False.
        """
        if request.min_score > 0 or request.is_limited or not request.by_preset:
            return False
        if "semantic" not in request.switches or digest is not None:
            return False
        found = any(each.item.tier == "semantic" for each in recalled.items)
        return not found and not any(each.part.startswith("semantic.") for each in recalled.missing)

    async def _pinned(self, request: ContextRequest, now: datetime) -> RecallResult:
        """Return the pinned facts, the most important first, whatever the cue is. A pin has no history, so a context of
        the past has none.

        They are not published as recalled: being in every context, each would be linked with every other memory.
        """
        if "semantic" not in request.switches or not _is_of_now(request):
            return RecallResult((), ())
        asked = replace(request.recall_request(("semantic",)), cue=None, groups=(), min_score=0.0, pinned=True)
        return await self._recall.recall(asked, now=now)

    async def _recalled(self, request: ContextRequest, tiers: tuple[Tier, ...], now: datetime) -> RecallResult:
        return await self._recall.recall(request.recall_request(tiers), now=now) if tiers else RecallResult((), ())

    async def _digest(self, request: ContextRequest, parts: DeadlineReads) -> Digest | None:
        digests = self._digests
        if digests is None or not self._reads_digest(request):
            return None

        async def current() -> Digest | None:
            digest = await digests.digest(request.tenant_id, request.owner, ceiling=request.ceiling)
            return None if digest is None or await digests.is_outdated(digest) else digest

        return await parts.ask("digest", current)

    async def _profile(self, request: ContextRequest, parts: DeadlineReads, now: datetime) -> Sequence[ContextValue]:
        profiles, asked = self._profiles, request.profile_request()
        if profiles is None or "profile" not in request.switches or (request.slots is not None and not asked.slots):
            return ()
        profile = await parts.ask("profile", lambda: profiles.profile(asked, now=now))
        return () if profile is None else tuple(_values(profile, now))

    async def _blocks(self, request: ContextRequest, parts: DeadlineReads) -> Sequence[WorkingBlock]:
        """Return the session's blocks, or the owner's blocks when there is no session."""
        held, session = self._held, request.session
        if held is None or "blocks" not in request.switches or not _is_of_now(request):
            return ()
        tenant_id, owner, ceiling = request.tenant_id, request.owner, request.ceiling
        if session is not None:
            return await parts.ask("blocks", lambda: session_blocks(held, tenant_id, session, ceiling=ceiling)) or ()
        return await parts.ask("blocks", lambda: owner_blocks(held, tenant_id, owner, ceiling=ceiling)) or ()

    async def _tasks(self, request: ContextRequest, parts: DeadlineReads) -> Sequence[ContextItem]:
        held = self._held
        if held is None or "tasks" not in request.switches or not _is_of_now(request):
            return ()
        tenant_id, owner, cue, ceiling = request.tenant_id, request.owner, request.cue, request.ceiling
        locale = self._policies.of(tenant_id).conflict.locale
        read = partial(tasks_to_do, held, tenant_id, owner, cue=cue, locale=locale, ceiling=ceiling)
        return await parts.ask("tasks", read) or ()

    def _reads_digest(self, request: ContextRequest) -> bool:
        """Return whether the digest is read. A context of the past has no digest, because only the current digest is
        stored."""
        return self._digests is not None and "digest" in request.switches and _is_of_now(request)

    def _rendered(self, memories: Memories, policy: ContextPolicy) -> RenderedContext:
        """Render the memories with a mark that does not occur in them."""
        statements = (*memories.tasks, *memories.pinned, *memories.facts, *memories.focus, *memories.episodes)
        texts = [text for each in statements for text in (each.content, each.subject)] + [memories.digest or ""]
        texts += [text for each in memories.said for text in (each.passage, each.speaker)]
        texts += [text for block in memories.blocks for text in (block.name, block.text)]
        texts += [text for each in memories.profile for text in (each.content, each.value, each.qualifier)]
        for _ in range(DRAWS):
            mark = self._mark()
            if not any(mark in text for text in texts):
                return render(memories, policy, mark=mark, count=self._count)
        raise Fatal(f"each of {DRAWS} boundary marks occurred in a memory, so they are not random")


def _is_of_now(request: ContextRequest) -> bool:
    """Return whether the context is about the present. Blocks, tasks and the digest have no history, so a context of
    the past omits them."""
    return request.as_of is None and request.known_at is None


def _joined(first: RecallResult, instead: RecallResult) -> RecallResult:
    """Add new items of the recall without a cue to the first result: facts, or episodes when there are no facts."""
    known = {each.item.id for each in first.items}
    episodes = [each for each in instead.items if each.item.tier == "episodic"][:EPISODES_INSTEAD]
    facts = [each for each in instead.items if each.item.tier == "semantic"]
    added = [each for each in (facts or episodes) if each.item.id not in known]
    missing = {each.part: each for each in (*first.missing, *instead.missing)}
    return RecallResult((*first.items, *added), tuple(missing.values()), first.silent and instead.silent)


def _memories(
    digest: Digest | None, digested: RecallResult, recalled: RecallResult, tiers: tuple[Tier, ...], now: datetime
) -> Memories:
    older = (each for each in digested.items if digest is not None and each.at is not None and each.at <= digest.at)
    facts = [each for each in recalled.items if each.item.tier == "semantic"]
    return Memories(
        digest=digest.text if digest else None,
        digest_id=digest.digest_id if digest else "",
        digested=_items(older, now),
        facts=_items(facts, now),
        more_facts=len(facts) >= share(LIMIT_MAX, tiers=len(tiers)),
        focus=_items((each for each in recalled.items if each.item.tier == "working"), now),
        episodes=_items((each for each in recalled.items if each.item.tier == "episodic"), now),
    )


def _items(recalled: Iterable[RecalledMemory], now: datetime) -> tuple[ContextItem, ...]:
    """Convert recalled memories to context items. A start date in the future is omitted, because the statement itself
    contains this date. The last confirmation is omitted while it is fresh, because most facts are."""
    return tuple(
        ContextItem(
            each.item.content,
            subject=each.item.subject or "user",
            category=each.item.category,
            sensitivity=each.sensitivity,
            id=each.item.id,
            since=each.since if each.since is not None and each.since <= now else None,
            confirmed=each.confirmed if each.confirmed is not None and now - each.confirmed > FRESH else None,
            day=each.at if each.item.tier == "episodic" else None,
            by_person=each.approved,
            trust=each.trust,
        )
        for each in recalled
        if not each.needs_own_word
    )


def _is_near(message: RecalledMemory) -> bool:
    return any(rank.list == "dense" and rank.rank < NEAR_MESSAGES for rank in message.ranks)


def _turn_of(message: RecalledMemory) -> SessionTurn | None:
    source = message.sources[0] if message.sources else None
    return None if source is None or source.turn_id is None else (source.session_id, source.turn_id)


def _values(profile: Profile, now: datetime) -> Iterable[ContextValue]:
    """Convert the values of a profile. A start date in the future is omitted, as in `_items`."""

    def shown(slot: str, value: ProfileValue, *, denied: bool) -> ContextValue:
        return ContextValue(
            slot,
            value.content,
            value.value or "",
            value.qualifier or "",
            denied=denied,
            sensitivity=value.sensitivity,
            id=value.fact_id,
            since=value.valid_from if value.valid_from_told and value.valid_from <= now else None,
            trust=value.trust,
        )

    for each in profile.slots:
        yield from (shown(each.slot, value, denied=False) for value in each.values)
        yield from (shown(each.slot, value, denied=True) for value in each.denied)


def _shown(rendered: RenderedContext, section: Section) -> tuple[str, ...]:
    return tuple(each.id for each in rendered.shown if each.section == section)
