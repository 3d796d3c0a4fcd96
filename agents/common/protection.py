"""Records without their secrets: what waits in a table, and what becomes a dead letter."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import unquote

from pydantic import JsonValue

from ...memory.language.clean_text import clean_text
from ...memory.secrets.secret_filter import SecretFilter, at_least, highest
from ...memory.secrets.turns import ProtectedTurn
from ...schemas import ids
from ...schemas.base import CONTENT_MAX, QUOTE_MAX, SUBJECT_MAX
from ...schemas.cloudevents import MASKED_HEADER, Headers
from ...schemas.front_door.framing import peek
from ...schemas.observations import Observation, Observed
from ...streams.log.port import Record

_OURS = ("ce_", "content-type", "memstream-", "kafka_dlt-")
"""Beginnings of the names of headers that no text is in."""


def keep_record(record: Record, turn: ProtectedTurn, secrets: SecretFilter) -> Record:
    """Return the record of a turn as it may be kept: itself if nothing in it is masked."""
    value = turn.turn.to_bytes() if turn.changed else record.value
    return _masked(record, value, secrets, key=turn.turn.session_key)


def keep_unread_record(record: Record, secrets: SecretFilter) -> Record:
    """Do the same for a record of any topic that was not decoded. A value that is no JSON stays as it came: nobody
    knows what it is. A masked value has lost its frames."""
    value = record.value
    read = peek(value or b"")
    shown = secrets.value(read).value
    if shown != read:
        value = json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    return _masked(record, value, secrets, key=_key_of(read))


def protect_observed(observed: Observed, secrets: SecretFilter) -> Observed:
    """Return an observed turn with nothing secret in its observations. An earlier version, or another policy, may have
    written them; what this one wrote comes back as it is."""
    kept = [protect_observation(each, secrets) for each in observed.observations]
    if all(new is old for new, old in zip(kept, observed.observations, strict=True)):
        return observed
    return observed.model_copy(update={"observations": tuple(each for each in kept if each is not None)})


def protect_observation(observation: Observation, secrets: SecretFilter) -> Observation | None:
    """Return an observation as it may be kept: itself if nothing changes, None if its content may not be kept."""
    content, subject = secrets.text(clean_text(observation.content)), secrets.text(clean_text(observation.subject))
    if not content.text or not subject.text:
        return None
    quote = secrets.mask(clean_text(observation.evidence))
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


def _masked(record: Record, value: bytes | None, secrets: SecretFilter, *, key: str | None = None) -> Record:
    """Return the record with this value, and with a header that tells that something in it is masked.

    `key`: the key that the ids in the value make. The record's own key stays if it is this one: it names the record.
    """
    own_key = record.key if key is not None and record.key == key.encode() else _protected_key(record.key, secrets)
    headers = tuple(_header(name, content, secrets) for name, content in record.headers)
    if (own_key, value, headers) == (record.key, record.value, record.headers):
        return record
    marked: Headers = tuple(each for each in headers if each[0] != MASKED_HEADER)
    return replace(record, key=own_key, value=value, headers=(*marked, (MASKED_HEADER, b"1")))


def _key_of(value: JsonValue) -> str | None:
    """Return the key that the ids in a record's value make; None if it names no session and no owner."""
    if not isinstance(value, dict):
        return None
    owner, session = value.get("owner"), value.get("session")
    if isinstance(owner, dict):
        parts = [value.get("tenant_id"), owner.get("scope"), owner.get("id")]
    else:
        named = session if isinstance(session, dict) else value
        parts = [value.get("tenant_id"), named.get("user_id"), named.get("session_id")]
    texts = [part for part in parts if isinstance(part, str)]
    try:
        return ids.join(*texts) if len(texts) == len(parts) else None
    except UnicodeEncodeError:  # half of an emoji: the record is refused, and names nothing
        return None


def _protected_key(key: bytes | None, secrets: SecretFilter) -> bytes | None:
    """Return a key with nothing secret in it, as a text and with the escapes of its parts read."""
    text = (key or b"").decode("utf-8", "surrogateescape")
    shown = secrets.mask(text)
    if shown == text and "%" in text and secrets.mask(unquote(text)) != unquote(text):
        shown = "/".join(ids.encode(secrets.mask(unquote(part))) for part in text.split("/"))
        if secrets.mask(unquote(shown)) != unquote(shown):
            shown = ids.encode(secrets.mask(unquote(text)))
    return key if shown == text else shown.encode("utf-8", "surrogateescape")


def _header(name: str, content: bytes, secrets: SecretFilter) -> tuple[str, bytes]:
    if name.startswith(_OURS):
        return name, content
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return secrets.mask(name), content
    prefix = f"{name}: "
    together = secrets.mask(prefix + text)
    shown = secrets.mask(text)
    if shown == text and together.startswith(prefix):
        shown = together.removeprefix(prefix)
    return secrets.mask(name), shown.encode()
