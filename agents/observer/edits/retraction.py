"""Retraction of a turn from its session (docs/design/retraction.md).

The label of the turn deletes its messages, now or when the recorder stores them. Commands take the turn out of facts
and episodes.
"""

from __future__ import annotations

from ....memory.working_set import entries
from ....schemas import ids
from ....schemas.collections import LABELS
from ....schemas.command_kinds import RETRACT_FACTS
from ....schemas.commands import Command
from ....schemas.edits.turns import FactsRetract, TurnRetract, TurnRetracted
from ....schemas.labels import TurnLabel
from ....schemas.outcomes import ApplyLabels, OutPoint, PutPoints, Write
from ....schemas.turns import MESSAGES_MAX, Owner
from ....streams.senders.commands import command_record
from ..flush import origins_after
from .scope import SessionEditResult, SessionEditScope

SOURCE = "/memstream/observer"


def retract_turn(args: TurnRetract, scope: SessionEditScope) -> SessionEditResult:
    """Take a turn back. The recent messages that the model sees as context go, because they do not name their turns."""
    command, before = scope.command, scope.session
    assert command.session is not None  # route refuses a command without a session
    of_turn = {each.observation_id for each in before.origins if each.turn_id == args.turn_id}
    working, gone = before.working, [each for each in before.working.entries if each.observation_id in of_turn]
    for each in gone:
        working = entries.evict(working, each.entry_id)
    session = before.model_copy(
        update={
            "working": working,
            "origins": origins_after(before.origins, (), working),
            "recent": (),
            "retracted": before.retracted.add(args.turn_id),
        }
    )
    commands = [_of_owner(owner, args, scope) for owner in scope.traces.owners]
    result = TurnRetracted(
        turn_id=args.turn_id,
        retracted=args.turn_id not in before.retracted,
        messages=scope.traces.messages,
        entries=len(gone),
        command_ids=tuple(each.command_id for each in commands),
    )
    return SessionEditResult(
        result,
        session,
        more_writes=_label(args, scope),
        records=tuple(command_record(each, source=SOURCE) for each in commands),
    )


def _label(args: TurnRetract, scope: SessionEditScope) -> tuple[Write, ...]:
    """Return the writes that put the label of the turn, and then apply it. For a worker of an earlier version, the
    label's sensitivity hides the messages."""
    command = scope.command
    assert command.session is not None  # route refuses a command without a session
    label = TurnLabel(
        label_id=ids.label_id(command.key, args.turn_id),
        tenant_id=command.tenant_id,
        user_id=command.session.user_id,
        session_id=command.session.session_id,
        turn_id=args.turn_id,
        messages=tuple(range(MESSAGES_MAX)),
        sensitivity="secret",
        at=scope.now,
        retracted=True,
    )
    return (
        PutPoints(collection=LABELS, points=(OutPoint(id=label.label_id, payload=label.to_payload()),)),
        ApplyLabels(tenant_id=command.tenant_id, ids=(label.label_id,)),
    )


def _of_owner(owner: Owner, args: TurnRetract, scope: SessionEditScope) -> Command:
    command = scope.command
    assert command.session is not None  # route refuses a command without a session
    return Command(
        command_id=ids.retraction_command_id(owner.key(command.tenant_id), command.command_id),
        kind=RETRACT_FACTS,
        tenant_id=command.tenant_id,
        owner=owner,
        args=FactsRetract(
            user_id=command.session.user_id,
            session_id=command.session.session_id,
            turn_id=args.turn_id,
            reason=args.reason,
        ).to_payload(),
        issued_by=command.issued_by,
        issued_at=scope.now,
    )
