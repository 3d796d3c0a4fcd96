"""Removal of secrets from records that a table keeps or that become dead letters."""

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
"""Prefixes of the names of headers without user text. These headers are not masked."""


def keep_record(record: Record, turn: ProtectedTurn, secrets: SecretFilter) -> Record:
    """Return a turn's record for storage, with secrets masked. A record without secrets is returned unchanged."""
    value = turn.turn.to_bytes() if turn.changed else record.value
    return _masked(record, value, secrets, key=turn.turn.session_key)


def keep_unread_record(record: Record, secrets: SecretFilter) -> Record:
    """Return a record of any topic for storage, with secrets masked. The record was not decoded.

    A value that is not JSON stays unchanged. A masked value is written as plain JSON, without its original frames.
    """
    value = record.value
    read = peek(value or b"")
    shown = secrets.value(read).value
    if shown != read:
        value = json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    return _masked(record, value, secrets, key=_key_of(read))


def protect_observed(observed: Observed, secrets: SecretFilter) -> Observed:
    """Return an observed turn with the secrets in its observations masked.

    An earlier version or another policy may have written secrets. Output of this version and policy stays unchanged.
    """
    kept = [protect_observation(each, secrets) for each in observed.observations]
    if all(new is old for new, old in zip(kept, observed.observations, strict=True)):
        return observed
    return observed.model_copy(update={"observations": tuple(each for each in kept if each is not None)})


def protect_observation(observation: Observation, secrets: SecretFilter) -> Observation | None:
    """Return an observation with secrets masked; unchanged when it has none, None when no content remains."""
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
    """Return the record with this value, masked key and headers. If anything changed, a header marks the record.

    `key`: the key that follows from the ids in the value. A record key equal to `key` stays unmasked, because it
    identifies the record.
    """
    own_key = record.key if key is not None and record.key == key.encode() else _protected_key(record.key, secrets)
    headers = tuple(_header(name, content, secrets) for name, content in record.headers)
    if (own_key, value, headers) == (record.key, record.value, record.headers):
        return record
    marked: Headers = tuple(each for each in headers if each[0] != MASKED_HEADER)
    return replace(record, key=own_key, value=value, headers=(*marked, (MASKED_HEADER, b"1")))


def _key_of(value: JsonValue) -> str | None:
    """Return the key that follows from the ids in a record's value, or None if it names no session and no owner."""
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
    except UnicodeEncodeError:  # an id has half of a surrogate pair, so the record is refused
        return None


def _protected_key(key: bytes | None, secrets: SecretFilter) -> bytes | None:
    """Return a key with secrets masked, both in the plain text and in percent-encoded parts."""
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
