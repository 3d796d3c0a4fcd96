"""Records and commands without their secrets: what waits in a table, and what becomes a dead letter."""

from __future__ import annotations

import json
from dataclasses import replace

from ...memory.secrets.secret_filter import SecretFilter, at_least, highest
from ...memory.secrets.turns import ProtectedTurn
from ...schemas.base import CONTENT_MAX, QUOTE_MAX, SUBJECT_MAX
from ...schemas.cloudevents import MASKED_HEADER, Headers
from ...schemas.commands import Command
from ...schemas.observations import Observation, Observed
from ...streams.log.port import Record

_OURS = ("ce_", "content-type", "memstream-", "kafka_dlt-")
"""Beginnings of the names of headers that no text is in."""


def keep_record(record: Record, turn: ProtectedTurn, secrets: SecretFilter) -> Record:
    """Return the record of a turn as it may be kept: itself if nothing in it is masked."""
    return _masked(record, turn.turn.to_bytes() if turn.changed else record.value, secrets)


def keep_unread_record(record: Record, secrets: SecretFilter) -> Record:
    """Do the same for a record of any topic that was not decoded. A value that is no JSON stays as it came: nobody
    knows what it is."""
    value = record.value
    try:
        read = json.loads(value or b"")
    except (ValueError, RecursionError):
        return _masked(record, value, secrets)
    shown = secrets.value(read).value
    if shown != read:
        value = json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return _masked(record, value, secrets)


def protect_command(command: Command, secrets: SecretFilter) -> Command:
    """Return a command with nothing secret in its arguments. A text that may not be kept is empty, which its kind
    refuses."""
    args = secrets.value(command.args).value
    kind, issued_by = secrets.mask(command.kind)[:64] or "-", secrets.mask(command.issued_by)[:128]
    if (args, kind, issued_by) == (command.args, command.kind, command.issued_by):
        return command
    return command.model_copy(update={"args": args, "kind": kind, "issued_by": issued_by})


def protect_observed(observed: Observed, secrets: SecretFilter) -> Observed:
    """Return an observed turn with nothing secret in its observations. An earlier version, or another policy, may have
    written them; what this one wrote comes back as it is."""
    kept = [protect_observation(each, secrets) for each in observed.observations]
    if all(new is old for new, old in zip(kept, observed.observations, strict=True)):
        return observed
    return observed.model_copy(update={"observations": tuple(each for each in kept if each is not None)})


def protect_observation(observation: Observation, secrets: SecretFilter) -> Observation | None:
    """Return an observation as it may be kept: itself if nothing changes, None if its content may not be kept."""
    content, subject = secrets.text(observation.content), secrets.text(observation.subject)
    if content.dropped or subject.dropped:
        return None
    quote = secrets.mask(observation.evidence)
    sensitivity = at_least(observation.sensitivity, highest(content.sensitivity, subject.sensitivity))
    given = (observation.content, observation.subject, observation.evidence, observation.sensitivity)
    if (content.text, subject.text, quote, sensitivity) == given:
        return observation
    return observation.model_copy(
        update={
            "content": content.text[:CONTENT_MAX],
            "subject": subject.text[:SUBJECT_MAX],
            "evidence": quote[:QUOTE_MAX],
            "sensitivity": sensitivity,
        }
    )


def _masked(record: Record, value: bytes | None, secrets: SecretFilter) -> Record:
    """Return the record with this value, and with a header that tells that something in it is masked."""
    headers = tuple((name, _header(name, content, secrets)) for name, content in record.headers)
    if value == record.value and headers == record.headers:
        return record
    marked: Headers = tuple(each for each in headers if each[0] != MASKED_HEADER)
    return replace(record, value=value, headers=(*marked, (MASKED_HEADER, b"1")))


def _header(name: str, content: bytes, secrets: SecretFilter) -> bytes:
    if name.startswith(_OURS):
        return content
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    return secrets.mask(text).encode()
