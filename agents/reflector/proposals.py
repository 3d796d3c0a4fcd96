"""One `facts.apply` command → verdicts and changes of facts, through the same conflict pipeline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from ...adapters.ports import VectorStore
from ...memory.facts.conflict import Neighbours, lookup_predicates
from ...memory.facts.proposals import ProposalOutcome, settle
from ...memory.facts.similarity import NearFact
from ...memory.facts.statements import Statement, statement_from_change
from ...memory.facts.transitions import Stamp
from ...memory.policies import MemoryPolicy
from ...memory.upkeep.sharing import shared_statement
from ...schemas import ids
from ...schemas.collections import EPISODES
from ...schemas.commands import Change as Proposal
from ...schemas.commands import Command, FactsApply, Verdict
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import FactCause, StoredFact
from ...schemas.turns import Owner
from ...streams.engine.retry import Calls
from .fact_overlay import FactOverlay, Vector
from .observed_turns import FactChange


@dataclass(frozen=True, slots=True)
class AppliedProposals:
    verdicts: tuple[Verdict, ...]
    changes: tuple[FactChange, ...]


def texts_of(proposals: Sequence[Proposal]) -> list[str]:
    """What has to be embedded, each text once."""
    return list(dict.fromkeys(each.content for each in proposals if each.content is not None))


async def episodes_of(
    command: FactsApply, *, store: VectorStore, calls: Calls, tenant_id: str, owner_key: str
) -> dict[str, StoredEpisode]:
    """The source episodes that this owner has."""
    named = dict.fromkeys(each for change in command.changes for each in change.source_episode_ids)
    wanted = [each for each in named if ids.is_derived(each)]
    if not wanted:
        return {}
    found = await calls.call("store", lambda: store.get(EPISODES, tenant_id=tenant_id, ids=wanted))
    episodes = {each: StoredEpisode.from_payload(record.payload) for each, record in found.items()}
    return {each: episode for each, episode in episodes.items() if episode.owner_key == owner_key}


async def apply(
    command: Command,
    owner: Owner,
    args: FactsApply,
    *,
    embed: Callable[[list[str]], Awaitable[Mapping[str, Vector]]],
    episodes: Mapping[str, StoredEpisode],
    view: FactOverlay,
    stamp: Stamp,
    policy: MemoryPolicy,
    count: Callable[[str], None],
) -> AppliedProposals:
    """Changes in their order, each seeing what the earlier ones did; one verdict for each."""
    vectors = await embed(texts_of(args.changes))
    await view.by_ids(each for change in args.changes for each in _targets(change))
    verdicts: list[Verdict] = []
    changes: list[FactChange] = []
    for place, change in enumerate(args.changes):
        known = [episodes[each] for each in change.source_episode_ids if each in episodes]
        for _ in range(len(change.source_episode_ids) - len(known)):
            count("unknown_source_episode")
        settled = await _settle(
            change,
            place,
            command,
            owner,
            episodes=known,
            vectors=vectors,
            view=view,
            stamp=stamp,
            policy=policy,
        )
        for transition in settled.transitions:
            worded = transition.fact.content == change.content and transition.before is None
            reworded = transition.before is not None and transition.before.content != transition.fact.content
            view.take(transition, vectors[transition.fact.content] if worded or reworded else None)
        cause = _cause(command, args, known)
        changes += (FactChange(transition, cause) for transition in settled.transitions)
        verdicts.append(
            Verdict(action=change.action, fact_id=settled.fact_id, verdict=settled.verdict, reason=settled.reason)
        )
    return AppliedProposals(tuple(verdicts), tuple(changes))


async def _settle(
    change: Proposal,
    place: int,
    command: Command,
    owner: Owner,
    *,
    episodes: Sequence[StoredEpisode],
    vectors: Mapping[str, Vector],
    view: FactOverlay,
    stamp: Stamp,
    policy: MemoryPolicy,
) -> ProposalOutcome:
    named = _targets(change)
    found = await view.by_ids(named)
    missing = next((each for each in _required(change) if each not in found), None)
    if missing is not None:
        return ProposalOutcome("unknown", "there is no such fact of this owner", missing)
    if change.action == "new" and change.source_episode_ids and not episodes:
        return ProposalOutcome("unknown", "none of its source episodes is known")
    targets: tuple[StoredFact, ...] = tuple(found[each] for each in named if each in found)
    statement = statement_from_change(
        change,
        cause=f"{command.command_id}/{place}",
        tenant_id=command.tenant_id,
        owner=owner,
        issued_at=command.issued_at,
        episodes=episodes,
        target=targets[0] if targets else None,
        policy=policy,
    )
    if change.action == "new" and change.source_fact_ids:
        shared = shared_statement(statement, await view.of_others(change.source_fact_ids), policy.sharing)
        if shared is None:
            return ProposalOutcome(
                "refused", "too few users say it now, or this group is not the one that facts are shared with"
            )
        statement = shared
    neighbours = Neighbours()
    if change.content is not None and change.action in ("new", "update", "merge"):
        equal = await view.equal(statement.subject, statement.content_hash)
        closed: tuple[StoredFact, ...] = ()
        if equal is None:
            closed = await view.closed(statement.subject, statement.content_hash)
        near = await _near(statement, vectors[change.content], view, policy)
        neighbours = Neighbours(equal=equal, near=near, closed=closed)
    if change.action == "judge":
        neighbours = Neighbours(near=await _near(statement, None, view, policy))
    return settle(change, statement, targets=targets, neighbours=neighbours, stamp=stamp, policy=policy)


async def _near(
    statement: Statement, vector: Vector | None, view: FactOverlay, policy: MemoryPolicy
) -> tuple[NearFact, ...]:
    predicates = lookup_predicates(statement, policy.conflict)
    return await view.neighbours(statement.subject, vector, predicates, limit=policy.conflict.neighbours)


def _targets(change: Proposal) -> tuple[str, ...]:
    if change.action == "merge":
        return change.source_fact_ids
    if change.action == "new" or change.target_fact_id is None:
        return ()
    return (change.target_fact_id, *change.source_fact_ids) if change.action == "judge" else (change.target_fact_id,)


def _required(change: Proposal) -> tuple[str, ...]:
    """A judgement can be carried out when what the pending fact was compared with is gone."""
    return _targets(change)[:1] if change.action == "judge" else _targets(change)


def _cause(command: Command, args: FactsApply, episodes: Sequence[StoredEpisode]) -> FactCause:
    return FactCause(
        turn_ids=tuple(dict.fromkeys(each.turn_id for each in episodes)),
        observation_ids=tuple(dict.fromkeys(each.observation_id for each in episodes)),
        command_id=command.command_id,
        run_id=args.run_id,
        model=args.model,
        prompt=args.prompt,
    )
