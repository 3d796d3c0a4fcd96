"""Erasure of a session from the observer's data (docs/design/retraction.md).

The row keeps the marker. The label of the session deletes its messages, now or when the recorder stores them. Commands
take the session out of facts and episodes.
"""

from __future__ import annotations

from ....schemas import ids
from ....schemas.collections import LABELS
from ....schemas.command_kinds import ERASE_FACTS
from ....schemas.commands import Command
from ....schemas.edits.sessions import EraseSession, FactsErase, SessionErased
from ....schemas.labels import SessionLabel
from ....schemas.outcomes import ApplyLabels, DeletePoints, OutPoint, PutPoints, Write
from ....schemas.turns import Owner
from ....streams.senders.commands import command_record
from ..commands import SOURCE
from ..rows import waiting_keys
from .scope import SessionEditResult, SessionEditScope


def erase_session(args: EraseSession, scope: SessionEditScope) -> SessionEditResult:
    """Take the session back. A repeated request deletes what came back from a backup."""
    before = scope.session
    commands = [_of_owner(owner, args, scope) for owner in scope.traces.owners]
    result = SessionErased(
        erased=not before.erased,
        messages=scope.traces.messages,
        entries=len(before.working.entries),
        waiting=before.waiting,
        command_ids=tuple(each.command_id for each in commands),
    )
    return SessionEditResult(
        result,
        before.without_content(),
        writes=_writes(scope),
        records=tuple(command_record(each, source=SOURCE) for each in commands),
        cleanup=waiting_keys(before, scope.command.key),
    )


def _writes(scope: SessionEditScope) -> tuple[Write, ...]:
    """Return the writes: the label of the session, then the deletions."""
    command = scope.command
    assert command.session is not None  # route refuses a command without a session
    label = SessionLabel(
        label_id=ids.session_label_id(command.key),
        tenant_id=command.tenant_id,
        user_id=command.session.user_id,
        session_id=command.session.session_id,
        at=scope.now,
    )
    gone = {
        name: tuple(each for each in found if each != label.label_id) for name, found in scope.traces.points.items()
    }
    return (
        PutPoints(collection=LABELS, points=(OutPoint(id=label.label_id, payload=label.to_payload()),)),
        ApplyLabels(tenant_id=command.tenant_id, ids=(label.label_id,)),
        *(
            DeletePoints(collection=name, tenant_id=command.tenant_id, ids=found)
            for name, found in gone.items()
            if found
        ),
    )


def _of_owner(owner: Owner, args: EraseSession, scope: SessionEditScope) -> Command:
    command = scope.command
    assert command.session is not None  # route refuses a command without a session
    return Command(
        command_id=ids.session_erasure_command_id(owner.key(command.tenant_id), command.command_id),
        kind=ERASE_FACTS,
        tenant_id=command.tenant_id,
        owner=owner,
        args=FactsErase(
            user_id=command.session.user_id, session_id=command.session.session_id, reason=args.reason
        ).to_payload(),
        issued_by=command.issued_by,
        issued_at=scope.now,
    )
