"""Settlement of the changes that a `facts.apply` command proposes, one change at a time.

A proposal is based on an earlier state of the facts. A target may have changed since then:

- The target is no longer active. The verdict is `stale`.
- The target is active and has another version. Reinforce and invalidate still apply. An update applies only when the
  new text contains all words of the current text; other new texts are new statements. Prune and merge are refused,
  because a fact is kept when it is doubtful whether to remove it.
- A target is pinned. Prune and merge are refused, and an update that another row already states.
- The row of a judgement is no longer pending, or the row that it was compared with has another text since. The verdict
  is `stale`. A row that its user has not confirmed stays pending: the verdict is `refused`.

A proposal has the trust of its least trusted source. A change that would close a more trusted fact is refused. An
update of a more trusted fact goes through the conflict pipeline as a new statement, which does not change that fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...schemas.commands import Change, VerdictName
from ...schemas.facts import Decision, StoredFact
from ..policies import MemoryPolicy
from ..trust.rendered_text import observed_rule
from .conflict import Neighbours, carry_out, contradicted_rows, equivalent_rows, resolve
from .fact_evidence import adds_no_evidence
from .neighbour_relations import is_confirmed
from .pending import is_newer, more_trusted_rivals, settle_pending
from .routing import OWN_WORD_ONLY
from .similarity import words
from .statements import Statement, statement_from_fact
from .transitions import Stamp, Transition, invalidate, merge, prune, reinforce, supersede, update
from .trust_order import outranks

STAGE = "proposal"


@dataclass(frozen=True, slots=True)
class ProposalOutcome:
    """The verdict on one change, with the transitions that carry out the change."""

    verdict: VerdictName
    reason: str
    fact_id: str | None = None
    transitions: tuple[Transition, ...] = ()


def settle(
    change: Change,
    statement: Statement,
    *,
    targets: Sequence[StoredFact],
    neighbours: Neighbours,
    stamp: Stamp,
    policy: MemoryPolicy,
) -> ProposalOutcome:
    """Settle one change.

    `targets` are the rows that the change names, in the order of the change: the row of `target_fact_id`; for a merge,
    the rows of `source_fact_ids`; for a judgement, the pending row and then the known row. All rows belong to the owner
    of the statement; the caller handles unknown ids. `statement` is the candidate fact of the change.
    """
    rule = None if change.content is None else observed_rule(statement.subject, change.content, statement.trust)
    if rule is not None:
        reason = f"it is an instruction to the assistant ({rule}): only a user's own turn is kept for review"
        return ProposalOutcome("refused", reason, change.target_fact_id)
    unheard = _needs_own_word(statement, targets) if change.action in ("new", "update") else None
    if unheard is not None:
        return unheard
    if change.action == "new":
        return _admitted(statement, neighbours, stamp, policy)
    if change.action == "judge":
        return _judged(change, targets, neighbours, stamp, policy)
    gone = next((target for target in targets if target.state != "active"), None)
    if gone is not None:
        return ProposalOutcome("stale", f"{gone.fact_id} is {gone.state}", gone.fact_id)
    target = targets[0]
    moved = change.expected_version is not None and change.expected_version != target.version
    why, decision = change.reason or f"proposed: {change.action}", Decision(stage=STAGE)
    if change.action == "reinforce":
        again = reinforce(target, statement, stamp, policy.confidence, reason=why, decision=decision)
        if again is None:
            return ProposalOutcome("duplicate", "its evidence was known already", target.fact_id)
        return ProposalOutcome("applied", why, target.fact_id, (again,))
    above = next((each for each in targets if outranks(each, statement)), None) if statement.evidence else None
    if above is not None and change.action in ("invalidate", "prune", "merge"):
        return ProposalOutcome("refused", f"{above.fact_id} is more trusted than the sources", above.fact_id)
    if change.action == "invalidate":
        return ProposalOutcome(
            "applied", why, target.fact_id, (invalidate(target, stamp, reason=why, decision=decision),)
        )
    if change.action == "update" and above is not None:
        return _admitted(statement, neighbours, stamp, policy)
    if change.action == "update":
        return _updated(change, target, statement, neighbours, stamp, policy, why=why, moved=moved)
    pinned = next((each for each in targets if each.is_pinned), None)
    if pinned is not None:
        return _kept(pinned)
    if moved:
        reason = f"the fact has version {target.version}, expected {change.expected_version}: in doubt it is kept"
        return ProposalOutcome("refused", reason, target.fact_id)
    if change.action == "prune":
        return ProposalOutcome("applied", why, target.fact_id, (prune(target, stamp, reason=why, decision=decision),))
    return _merged(change, targets, statement, neighbours, stamp, policy, why)


def _kept(fact: StoredFact) -> ProposalOutcome:
    """Refuse to remove or merge a pinned fact."""
    return ProposalOutcome("refused", f"{fact.fact_id} is pinned: only a person removes or merges it", fact.fact_id)


def _admitted(statement: Statement, neighbours: Neighbours, stamp: Stamp, policy: MemoryPolicy) -> ProposalOutcome:
    over = next((row for row in neighbours.closed if adds_no_evidence(row, statement)), None)
    if over is not None and neighbours.equal is None:
        # A closed fact may become true again, but the turns that it already has as evidence do not prove that.
        return ProposalOutcome("stale", f"it was believed from the same turns and is now {over.state}", over.fact_id)
    resolution = resolve(statement, neighbours, policy, now=stamp.now)
    transitions = carry_out(resolution, statement, stamp, policy)
    into = resolution.into
    if into is not None and not transitions:
        return ProposalOutcome("duplicate", "the fact and its evidence are already known", into.fact_id)
    return ProposalOutcome("applied", resolution.reason, into.fact_id if into else statement.fact_id, transitions)


def _judged(
    change: Change, targets: Sequence[StoredFact], neighbours: Neighbours, stamp: Stamp, policy: MemoryPolicy
) -> ProposalOutcome:
    assert change.judgement is not None  # validated by Change
    pending, known = targets[0], next(iter(targets[1:]), None)
    if pending.state != "pending":
        return ProposalOutcome("stale", f"{pending.fact_id} is {pending.state}", pending.fact_id)
    if pending.is_unconfirmed:
        reason = "its user has not confirmed it: it stays pending until the user or a person does"
        return ProposalOutcome("refused", reason, pending.fact_id)
    if known is not None and change.compared_hash not in (None, known.content_hash):
        return ProposalOutcome("stale", f"{known.fact_id} has another text since the comparison", pending.fact_id)
    if known is None and change.judgement == "duplicate":
        return ProposalOutcome("unknown", "the fact it was compared with is gone", pending.fact_id)
    if change.judgement != "duplicate" and pending.valid_from > stamp.now:
        reason = f"it begins at {pending.valid_from.isoformat()}: it stays pending until then"
        return ProposalOutcome("refused", reason, pending.fact_id)
    rivals = tuple(
        row
        for row in contradicted_rows(statement_from_fact(pending), neighbours.near, policy, now=stamp.now)
        if row.state == "active" and row.fact_id != (known.fact_id if known else None)
    )
    above = more_trusted_rivals(pending, known, change.judgement, rivals, policy)
    if above and not any(is_newer(row, pending) for row in above):
        reason = f"{above[0].fact_id} is more trusted: it stays pending until the user says it"
        return ProposalOutcome("refused", reason, pending.fact_id)
    rivals = tuple({row.fact_id: row for row in (*rivals, *above)}.values())
    twin = _active_twin(pending, neighbours, policy) if change.judgement == "coexist" and not rivals else None
    if twin is not None:
        # Another row was reworded while this row waited, and now states the same. Two active rows would be duplicates.
        transitions = settle_pending(pending, twin, "duplicate", stamp, policy, why="")
    else:
        transitions = settle_pending(pending, known, change.judgement, stamp, policy, why=change.reason, rivals=rivals)
    return ProposalOutcome("applied", transitions[-1].reason, pending.fact_id, transitions)


def _active_twin(pending: StoredFact, neighbours: Neighbours, policy: MemoryPolicy) -> StoredFact | None:
    """Return the active row that states the same as the pending row."""
    rows = equivalent_rows(statement_from_fact(pending), neighbours.near, policy)
    return next((row for row in rows if row.state == "active" and row.fact_id != pending.fact_id), None)


def _updated(
    change: Change,
    target: StoredFact,
    statement: Statement,
    neighbours: Neighbours,
    stamp: Stamp,
    policy: MemoryPolicy,
    *,
    why: str,
    moved: bool,
) -> ProposalOutcome:
    """Settle an update of one target. `moved`: the target no longer has the version that the change expects.

    - Another row already has the new text: that row replaces the target.
    - The new text equals the target's text: it is evidence for the target.
    - The new text contradicts or repeats another active row: refused.
    - The target has the expected version: the update applies.
    - Otherwise the words decide. A new text with all words of the old text applies. A new text with only some of these
      words reinforces the target. Any other text is a new statement.
    """
    equal = neighbours.equal
    if equal is not None and equal.fact_id != target.fact_id and not is_confirmed(equal, statement):
        if target.is_pinned:
            return _kept(target)
        return _replaced_by_equal(target, equal, statement, stamp, policy, why)
    if statement.content == target.content and change.category in (None, target.category):
        again = reinforce(
            target, statement, stamp, policy.confidence, reason="said again", decision=Decision(stage="exact")
        )
        if again is None:
            return ProposalOutcome("duplicate", "it says that already", target.fact_id)
        return ProposalOutcome("applied", "said again", target.fact_id, (again,))
    against = _refuse_overlap((target,), statement, neighbours, stamp, policy)
    if against is not None:
        return against
    if not moved:
        done = update(target, statement, stamp, reason=why, decision=Decision(stage=STAGE))
        return ProposalOutcome("applied", why, target.fact_id, (done,))
    old, new = words(target.content), words(statement.content)
    if old <= new:
        done = update(target, statement, stamp, reason=why, decision=Decision(stage="detail"))
        return ProposalOutcome("applied", "it adds detail to the fact", target.fact_id, (done,))
    if new < old:
        reason = "the fact already says more"
        again = reinforce(target, statement, stamp, policy.confidence, reason=reason, decision=Decision(stage="detail"))
        return ProposalOutcome("applied" if again else "duplicate", reason, target.fact_id, (again,) if again else ())
    return _admitted(statement, neighbours, stamp, policy)


def _refuse_overlap(
    targets: Sequence[StoredFact], statement: Statement, neighbours: Neighbours, stamp: Stamp, policy: MemoryPolicy
) -> ProposalOutcome | None:
    """Refuse a rewording that contradicts or repeats an active row outside `targets`.

    Without the refusal, the active rows would contradict each other, or two active rows would state the same.
    """
    named = {target.fact_id for target in targets}

    def other(rows: Iterable[StoredFact]) -> StoredFact | None:
        return next((row for row in rows if row.fact_id not in named and row.state == "active"), None)

    against = other(contradicted_rows(statement, neighbours.near, policy, now=stamp.now))
    if against is not None:
        return ProposalOutcome("refused", f"it contradicts {against.fact_id}: propose it as new", targets[0].fact_id)
    double = other(equivalent_rows(statement, neighbours.near, policy))
    if double is not None:
        return ProposalOutcome("refused", f"{double.fact_id} says so already: merge the two", targets[0].fact_id)
    return None


def _needs_own_word(statement: Statement, targets: Sequence[StoredFact]) -> ProposalOutcome | None:
    """Refuse a preference or an identity that comes from a tool and has no evidence from a user."""
    said = (*statement.evidence, *(each for target in targets for each in target.evidence))
    by_user = any((each.trust or statement.trust) == "user" for each in said)
    if statement.trust != "tool" or by_user or statement.category not in OWN_WORD_ONLY:
        return None
    target = next(iter(targets), None)
    reason = f"only a user's own word makes a fact of the category {statement.category}"
    return ProposalOutcome("refused", reason, target.fact_id if target else None)


def _is_worded_by_the_most_trusted(targets: Sequence[StoredFact], statement: Statement) -> bool:
    """Return whether the merged text is the text of a most trusted source. Sources of equal trust allow any text."""
    if not any(outranks(one, other) for one in targets for other in targets):
        return True
    top = [one for one in targets if not any(outranks(other, one) for other in targets)]
    return any(each.content_hash == statement.content_hash for each in top)


def _replaced_by_equal(
    target: StoredFact, equal: StoredFact, statement: Statement, stamp: Stamp, policy: MemoryPolicy, why: str
) -> ProposalOutcome:
    """Settle an update whose new text is already the text of the row `equal`.

    The row `equal` gets the evidence of the update and supersedes the target.
    """
    decision = Decision(stage="exact", other_fact_id=equal.fact_id)
    closed = supersede(
        target,
        stamp,
        by=equal.fact_id,
        valid_to=max(target.valid_from, statement.begins),
        reason=why,
        decision=decision,
    )
    again = reinforce(
        equal,
        statement,
        stamp,
        policy.confidence,
        reason=why,
        decision=Decision(stage="exact", other_fact_id=target.fact_id),
        supersedes=target.fact_id,
    )
    return ProposalOutcome("applied", why, equal.fact_id, (closed, again) if again else (closed,))


def _merged(
    change: Change,
    targets: Sequence[StoredFact],
    statement: Statement,
    neighbours: Neighbours,
    stamp: Stamp,
    policy: MemoryPolicy,
    why: str,
) -> ProposalOutcome:
    if len({target.fact_id for target in targets}) < len(targets):
        return ProposalOutcome("refused", "a fact cannot be merged with itself", targets[0].fact_id)
    if len({target.subject for target in targets}) > 1:
        return ProposalOutcome("refused", "facts of different subjects cannot be merged", targets[0].fact_id)
    equal = neighbours.equal
    if equal is not None and equal.fact_id not in {target.fact_id for target in targets}:
        return ProposalOutcome(
            "refused", f"fact {equal.fact_id} already has the merged text: name it as a source", equal.fact_id
        )
    against = _refuse_overlap(targets, statement, neighbours, stamp, policy)
    if against is not None:
        return against
    assert change.content is not None  # validated by Change
    if not _is_worded_by_the_most_trusted(targets, statement):
        reason = "their trust differs: only the words of the most trusted one may remain"
        return ProposalOutcome("refused", reason, targets[0].fact_id)
    transitions = merge(
        targets,
        content=change.content,
        predicate=statement.predicate,
        confidence=change.confidence,
        stamp=stamp,
        reason=why,
        stage=STAGE,
    )
    return ProposalOutcome("applied", why, targets[0].fact_id, transitions)
