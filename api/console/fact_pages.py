"""Pages of facts: the list, the screen Fact with its versions, sources and actions, and the episodes behind a fact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...recall.profile import ProfileReader
from ...recall.provenance import FactTracer, ProvenanceChain
from ...recall.recall_reports import RecallReports
from ...recall.record_reader import RecordReader
from ...schemas.facts import Fact, FactState, FactUpdated, Zone
from ...schemas.observations import Observation, TokenUsage
from ...schemas.turns import SENSITIVITIES
from ...schemas.working_set import StoredMessage
from ...streams.log.fanout import TopicFanout
from ..credentials import Caller
from ..edit_routes import EDIT_ROUTES, EditRoute, body_model
from ..edits import EditSender
from ..owner_params import RecordId, RecordQuery
from ..problems import not_found
from ..records import FactQuery, FactsQuery, within_bounds
from ..reviews import FactReviews, ReviewAccepted, ReviewQuery, Verdict
from ..scopes import Scope
from .as_commands import as_commands, owner_arguments
from .live import position, stream_query
from .pages import ConsolePages, Noticed, asked, checked_model
from .shown_text import TextPiece, pieces_with

STATES: Final = ("active", "pending", "quarantined", "superseded", "invalidated", "expired", "forgotten", "all")
Action = Literal["approve", "reject", "confirm", "edit", "supersede", "forget", "pin", "unpin"]
REVIEWED: Final = ("quarantined", "pending")
"""States of facts that a person may approve or reject."""
CHANGED: Final = ("active", "pending")
"""States of facts that an edit may change."""
VERDICTS: Final[Mapping[str, Verdict]] = {"approve": "facts.approve", "reject": "facts.reject"}
EDITS: Final[Mapping[str, EditRoute]] = {
    action: next(route for route in EDIT_ROUTES if route.kind == kind)
    for action, kind in (
        ("confirm", "facts.reinforce"),
        ("edit", "facts.update"),
        ("supersede", "facts.supersede"),
        ("forget", "facts.forget"),
        ("pin", "facts.pin"),
        ("unpin", "facts.unpin"),
    )
}
_RIGHTS: Final[Mapping[Action, tuple[Scope, Sequence[str]]]] = {
    "approve": ("memory:review", REVIEWED),
    "reject": ("memory:review", REVIEWED),
    "confirm": ("memory:write", ("active",)),
    "edit": ("memory:write", CHANGED),
    "supersede": ("memory:write", ("active",)),
    "forget": ("memory:write", (*CHANGED, "superseded", "invalidated", "expired", "quarantined")),
    "pin": ("memory:write", ("active",)),
    "unpin": ("memory:write", ("active",)),
}
"""Scope that an action needs, and the states of the facts to which the page offers it. The stage decides."""


ENDED: Final = ("superseded", "invalidated", "expired", "forgotten")
"""States of facts that memory does not believe any more."""
MEANINGS: Final[Mapping[FactState, str]] = {
    "active": "Memory believes this.",
    "pending": "Memory does not believe this yet.",
    "quarantined": "Memory does not believe this: it is an instruction to the assistant, and waits for a person.",
    "superseded": "Memory believed this. It was true, and is over.",
    "invalidated": "Memory believed this. It was never true.",
    "expired": "Memory believed this. Its time is over.",
    "forgotten": "Memory has forgotten this: no read returns it.",
}

ZONES: Final[Mapping[Zone, str]] = {
    "HOT": "almost the same",
    "NEAR-DUP": "very near",
    "CONFLICT-CHECK": "near",
    "COLD": "not near",
}


class FactPageQuery(FactQuery, Noticed):
    """Query of the screen Fact."""


class FactListQuery(FactsQuery, Noticed):
    """Query of the list of facts. In the states `quarantined` and `pending` the list is the review."""


@dataclass(frozen=True, slots=True)
class Version:
    """A change of the fact, with the fact that it was compared with, if the caller may see it."""

    event: FactUpdated
    other: Fact | None
    usage: TokenUsage | None
    """Tokens of the model call that observed it. Only the first turn of a call has them."""

    @property
    def wording_before(self) -> str | None:
        """The previous wording, when this change altered it."""
        before = self.event.before
        return before.content if before is not None and before.content != self.event.fact.content else None


@dataclass(frozen=True, slots=True)
class TurnEvidence:
    """A turn behind the fact: its messages with the quotes marked, and the observations made from it."""

    session_id: str
    turn_id: str
    user_id: str | None
    messages: Sequence[tuple[StoredMessage, Sequence[TextPiece]]]
    observations: Sequence[Observation]
    gone: bool
    ends: bool
    """True for a turn that only ended the fact."""


def router(
    pages: ConsolePages,
    reader: Caller,
    *,
    record_reader: RecordReader,
    profiles: ProfileReader,
    fact_tracer: FactTracer,
    recall_reports: RecallReports,
    edits: EditSender,
    reviews: FactReviews,
    followers: TopicFanout,
) -> APIRouter:
    """Build the routes. `reader` is the dependency that provides a caller with the right to read."""
    routes = APIRouter(route_class=pages.route_class(), include_in_schema=False)

    @routes.get("/facts")
    async def facts(request: Request, caller: Caller = reader) -> Response:
        query = asked(FactListQuery, request)
        selection = query.facts(caller, profiles=profiles)
        after = await position(followers)
        page = await within_bounds(record_reader.facts(selection, limit=query.limit, cursor=query.cursor))
        return pages.page(
            request,
            "facts.html",
            caller=caller,
            page=page,
            query=query,
            tenant=selection.tenant_id,
            owner=selection.owner,
            live=stream_query(after, selection.tenant_id, selection.owner, query.ceiling),
            states=STATES,
            sensitivities=SENSITIVITIES,
            reviews=query.state in REVIEWED and "memory:review" in caller.scopes,
            commands=as_commands(
                request,
                "facts",
                query,
                cli=[
                    "show",
                    "facts",
                    "--tenant",
                    selection.tenant_id,
                    *owner_arguments(selection.owner),
                    "--state",
                    query.state,
                    "--subject",
                    query.subject,
                ],
            ),
        )

    @routes.get("/facts/{fact_id}")
    async def fact(request: Request, fact_id: RecordId, caller: Caller = reader) -> Response:
        query = asked(FactPageQuery, request)
        ref = query.ref(caller, fact_id)
        after = await position(followers)
        chain = await fact_tracer.trace(ref)
        if chain is None:
            raise not_found(f"there is no fact {fact_id} here, or it may not be read")
        sources = _sources(chain)
        others = await record_reader.facts_by_id(ref.tenant_id, _named(chain), sees=caller.sees, ceiling=query.ceiling)
        return pages.page(
            request,
            "fact.html",
            caller=caller,
            fact=chain.fact,
            chain=chain,
            live=stream_query(after, ref.tenant_id, chain.fact.owner, query.ceiling),
            tenant=ref.tenant_id,
            query=query,
            ceiling=query.ceiling,
            versions=_versions(chain, others),
            sources=[each for each in sources if not each.ends],
            endings=[each for each in sources if each.ends],
            ended_by=_ended_by(chain),
            meaning=MEANINGS[chain.fact.state],
            zones=ZONES,
            has_ended=chain.fact.state in ENDED,
            others=others,
            recalls=await recall_reports.latest(ref.tenant_id, chain.fact.owner, fact_id),
            actions=_offered(caller, chain.fact),
            commands=as_commands(
                request, f"facts/{fact_id}/trace", query, cli=["trace", fact_id, "--tenant", ref.tenant_id]
            ),
        )

    @routes.get("/episodes/{episode_id}")
    async def episode(request: Request, episode_id: RecordId, caller: Caller = reader) -> Response:
        query = asked(RecordQuery, request)
        tenant_id = query.tenant_of(caller)
        found = await record_reader.episode(tenant_id, episode_id, sees=caller.sees, ceiling=query.ceiling)
        if found is None or found.deleted_at is not None:
            raise not_found(f"there is no episode {episode_id} here, or it may not be read")
        return pages.page(
            request,
            "episode.html",
            caller=caller,
            episode=found,
            tenant=tenant_id,
            ceiling=query.ceiling,
            commands=as_commands(
                request,
                None if found.archived_at is None else f"episodes/{episode_id}/verbatim",
                query,
                cli=["show", "episodes", "--tenant", tenant_id, *owner_arguments(found.owner)],
            ),
        )

    @routes.post("/facts/{fact_id}/{action}")
    async def act(request: Request, fact_id: RecordId, action: Action, caller: Caller = reader) -> Response:
        form = await pages.forms.form(request)
        back = form.pop("back", None)
        caller.require(_RIGHTS[action][0])
        if action in VERDICTS:
            answer = await reviews.decide(VERDICTS[action], fact_id, checked_model(ReviewQuery, form), caller)
            return pages.done(request, back, "accepted" if isinstance(answer, ReviewAccepted) else "applied")
        route = EDITS[action]
        done = await edits.send(route, checked_model(body_model(route), form), caller, fact_id)
        return pages.done(request, back, "accepted" if done.result is None else "applied")

    return routes


def _offered(caller: Caller, fact: Fact) -> frozenset[Action]:
    other = "pin" if fact.is_pinned else "unpin"
    return frozenset(
        action
        for action, (scope, states) in _RIGHTS.items()
        if scope in caller.scopes and fact.state in states and action != other
    )


def _named(chain: ProvenanceChain) -> list[str]:
    """Return the ids of other facts that the page names."""
    fact = chain.fact
    compared = [event.decision.other_fact_id for event in chain.events if event.decision is not None]
    named = (*compared, fact.supersedes, fact.superseded_by, fact.waits_for)
    return list(dict.fromkeys(each for each in named if each is not None))


def _versions(chain: ProvenanceChain, others: Mapping[str, Fact]) -> list[Version]:
    """Return the changes, newest first."""
    usage = {each.observation.observation_id: each.usage for each in chain.observations}
    return [
        Version(
            event,
            None if event.decision is None else others.get(event.decision.other_fact_id or ""),
            next((usage[each] for each in event.cause.observation_ids if usage.get(each) is not None), None),
        )
        for event in reversed(chain.events)
    ]


def _ended_by(chain: ProvenanceChain) -> FactUpdated | None:
    """Return the change that ended the fact; None while the fact is open, and when the log no longer has it."""
    if chain.fact.state not in ENDED:
        return None
    return next((each for each in reversed(chain.events) if each.fact.state in ENDED), None)


def _only_ending(chain: ProvenanceChain) -> frozenset[str]:
    """Return the observations that only ended the fact."""
    backed = {each.observation_id for each in chain.fact.evidence}
    ending: set[str] = set()
    for event in chain.events:
        (ending if event.fact.state in ENDED else backed).update(event.cause.observation_ids)
    return frozenset(ending - backed)


def _sources(chain: ProvenanceChain) -> list[TurnEvidence]:
    """Group messages and observations by turn, oldest first."""
    quotes: dict[tuple[str, str], list[str]] = {}
    for evidence in chain.fact.evidence:
        if evidence.command_id is None:
            quotes.setdefault((evidence.session_id, evidence.turn_id), []).append(evidence.quote)
    users: dict[tuple[str, str], str] = {}
    observations: dict[tuple[str, str], list[Observation]] = {}
    for seen in chain.observations:
        key = (seen.session_id, seen.turn_id)
        users[key] = seen.user_id
        observations.setdefault(key, []).append(seen.observation)
        quotes.setdefault(key, []).append(seen.observation.evidence)
    messages: dict[tuple[str, str], list[StoredMessage]] = {}
    for message in chain.turns:
        messages.setdefault((message.session_id, message.turn_id), []).append(message)
        users.setdefault((message.session_id, message.turn_id), message.user_id)
    gone, ending = frozenset(chain.turns_gone), _only_ending(chain)
    backed = {(each.session_id, each.turn_id) for each in chain.fact.evidence}
    return [
        TurnEvidence(
            *key,
            users.get(key),
            [(each, pieces_with(each.content, quotes.get(key, ()))) for each in messages.get(key, ())],
            observations.get(key, ()),
            key in gone,
            key not in backed and all(each.observation_id in ending for each in observations.get(key, ())),
        )
        for key in dict.fromkeys((*messages, *observations, *chain.turns_gone))
    ]
