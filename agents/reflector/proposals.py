"""Application of a `facts.apply` command: verdicts and fact changes. The functions write nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...memory.facts.conflict import Neighbours
from ...memory.facts.proposals import ProposalOutcome, settle
from ...memory.facts.retractions import ASKED
from ...memory.facts.statements import statement_from_change
from ...memory.upkeep.sharing import shared_statement
from ...schemas.commands import Change as Proposal
from ...schemas.commands import Command, FactsApply, Verdict
from ...schemas.episodes import StoredEpisode
from ...schemas.facts import FactCause, StoredFact
from ...schemas.turns import Owner
from ...streams.engine.decision import Rows
from .episodes import Episodes, session_of_episode
from .fact_changes import FactChange, FactChanger
from .fact_overlay import Vector
from .rows import is_retracted


@dataclass(frozen=True, slots=True)
class AppliedProposals:
    """The effects of a command. `verdicts`: one per proposal, in order."""

    verdicts: tuple[Verdict, ...]
    changes: tuple[FactChange, ...]


async def apply(
    command: Command, owner: Owner, args: FactsApply, *, rows: Rows, facts: FactChanger, episodes: Episodes
) -> AppliedProposals:
    """Settle the proposals in order. Each proposal sees the changes of earlier proposals.

    An episode of a turn that was taken back is no source, because the command may be older than the retraction.
    """
    named = (each for change in args.changes for each in change.source_episode_ids)
    owner_key = owner.key(command.tenant_id)
    found = await episodes.of_owner(named, tenant_id=command.tenant_id, owner_key=owner_key)
    known = {
        each: episode
        for each, episode in found.items()
        if not is_retracted(rows, owner_key, session_of_episode(episode), episode.turn_id)
    }
    vectors = await facts.embed(_texts(args.changes))
    await facts.overlay.by_ids(each for change in args.changes for each in _targets(change))
    verdicts: list[Verdict] = []
    changes: list[FactChange] = []
    for place, change in enumerate(args.changes):
        sources = [known[each] for each in change.source_episode_ids if each in known]
        for _ in range(len(change.source_episode_ids) - len(sources)):
            facts.count("unknown_source_episode")
        settled = await _settle(change, place, command, owner, sources=sources, vectors=vectors, facts=facts)
        changes += facts.change(settled.transitions, _cause(command, args, sources), vectors)
        verdicts.append(
            Verdict(action=change.action, fact_id=settled.fact_id, verdict=settled.verdict, reason=settled.reason)
        )
    return AppliedProposals(tuple(verdicts), tuple(changes))


def _texts(proposals: Sequence[Proposal]) -> list[str]:
    """Return the distinct texts to embed."""
    return list(dict.fromkeys(each.content for each in proposals if each.content is not None))


async def _settle(
    change: Proposal,
    place: int,
    command: Command,
    owner: Owner,
    *,
    sources: Sequence[StoredEpisode],
    vectors: Mapping[str, Vector],
    facts: FactChanger,
) -> ProposalOutcome:
    """Return the outcome of one proposal. `place`: its position in the command."""
    overlay, policy = facts.overlay, facts.policy
    named = _targets(change)
    found = await overlay.by_ids(named)
    missing = next((each for each in _required(change) if each not in found), None)
    if missing is not None:
        return ProposalOutcome("unknown", "there is no such fact of this owner", missing)
    if change.action == "new" and change.source_episode_ids and not sources:
        return ProposalOutcome("unknown", "none of its source episodes is known")
    targets: tuple[StoredFact, ...] = tuple(found[each] for each in named if each in found)
    statement = statement_from_change(
        change,
        cause=f"{command.command_id}/{place}",
        tenant_id=command.tenant_id,
        owner=owner,
        issued_at=command.issued_at,
        episodes=sources,
        target=targets[0] if targets else None,
        policy=policy,
    )
    if change.action == "new" and change.source_fact_ids:
        shared = shared_statement(statement, await overlay.of_others(change.source_fact_ids), policy.sharing)
        if shared is None:
            return ProposalOutcome(
                "refused", "too few users have this fact now, or facts are not shared with this group"
            )
        statement = shared
    if change.action == "new" and facts.taken_back(statement) is not None:
        return ProposalOutcome("stale", ASKED)
    neighbours = Neighbours()
    if change.content is not None and change.action in ("new", "update", "merge"):
        equal = await overlay.equal(statement)
        closed: tuple[StoredFact, ...] = ()
        if equal is None:
            closed = await overlay.closed(statement.subject, statement.content_hash)
        near = await facts.near(statement, vectors[change.content])
        neighbours = Neighbours(equal=equal, near=near, closed=closed)
    if change.action == "judge":
        neighbours = Neighbours(near=await facts.near(statement, None))
    return settle(change, statement, targets=targets, neighbours=neighbours, stamp=facts.stamp, policy=policy)


def _targets(change: Proposal) -> tuple[str, ...]:
    """Return the ids of the owner's facts named in the proposal."""
    if change.action == "merge":
        return change.source_fact_ids
    if change.action == "new" or change.target_fact_id is None:
        return ()
    return (change.target_fact_id, *change.source_fact_ids) if change.action == "judge" else (change.target_fact_id,)


def _required(change: Proposal) -> tuple[str, ...]:
    """Return the facts that must exist for the proposal. A judgement requires only the pending fact."""
    return _targets(change)[:1] if change.action == "judge" else _targets(change)


def _cause(command: Command, args: FactsApply, sources: Sequence[StoredEpisode]) -> FactCause:
    return FactCause(
        turn_ids=tuple(dict.fromkeys(each.turn_id for each in sources)),
        observation_ids=tuple(dict.fromkeys(each.observation_id for each in sources)),
        command_id=command.command_id,
        issued_by=command.issued_by,
        run_id=args.run_id,
        model=args.model,
        prompt=args.prompt,
    )
