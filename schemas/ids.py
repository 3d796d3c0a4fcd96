"""Ids and keys. An id is derived from the cause of its record (such as a turn or a command), never from content alone
and never from an offset (docs/reference/ids.md)."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote
from uuid import UUID

NAMESPACE = UUID("c4622933-a6d6-5361-96c9-da71a18604fb")
_NAMESPACE_BYTES = NAMESPACE.bytes


_UNRESERVED = re.compile(r"[A-Za-z0-9_.~-]*")
"""Texts that `quote` does not change."""


def encode(part: str) -> str:
    return part if _UNRESERVED.fullmatch(part) else quote(part, safe="")


def join(*parts: str) -> str:
    """Percent-encode the parts and join them with `/`."""
    return "/".join(encode(part) for part in parts)


def split(key: str) -> tuple[str, ...]:
    """Return the decoded parts of a key."""
    return tuple(unquote(part) for part in key.split("/"))


def session_key(tenant_id: str, user_id: str, session_id: str) -> str:
    """Return the key of a session. It contains the user, so two users with the same session id never share memory."""
    return join(tenant_id, user_id, session_id)


def owner_key(tenant_id: str, scope: str, owner_id: str) -> str:
    return join(tenant_id, scope, owner_id)


def fact_key(tenant_id: str, fact_id: str) -> str:
    """Return the key of a record on memory.facts."""
    return join(tenant_id, fact_id)


def canonical(text: str) -> str:
    """Return the canonical text: NFC, lower case, white space collapsed and trimmed. Equal statements have equal
    canonical texts."""
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def content_hash(text: str) -> str:
    return hashlib.sha256(canonical(text).encode("utf-8", "surrogatepass")).hexdigest()


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 bytes, in hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _derive(name: str) -> str:
    """Return a UUID of version 5, like `uuid5` but three times as fast."""
    digest = bytearray(hashlib.sha1(_NAMESPACE_BYTES + name.encode(), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def observation_id(session: str, turn_id: str, subject: str, content: str) -> str:
    """Derive an observation's id. `session` is a session key; subject and turn id are encoded here."""
    return _derive(f"observation/{session}/{encode(turn_id)}/{encode(subject)}/{content_hash(content)}")


def episode_id(observation: str) -> str:
    return _derive(f"episode/{observation}")


def fact_id(owner: str, cause: str) -> str:
    """Derive a fact's id. `cause` is an observation id, or `<command_id>/<index in its changes>`."""
    return _derive(f"fact/{owner}/{cause}")


def event_id(fact: str, version: int) -> str:
    return _derive(f"event/{fact}/{version}")


def message_id(session: str, turn_id: str, index: int) -> str:
    return _derive(f"message/{session}/{encode(turn_id)}/{index}")


def run_id(owner: str, cause: str) -> str:
    """Derive a run's id. `cause` is `<session key>/<encoded turn_id>` (see `turn_cause`) or a command id."""
    return _derive(f"run/{owner}/{cause}")


def turn_cause(session: str, turn_id: str) -> str:
    return f"{session}/{encode(turn_id)}"


def command_id(run: str, n: int) -> str:
    return _derive(f"command/{run}/{n}")


def edit_observation_id(owner: str, command: str) -> str:
    """Derive the observation id of a statement that comes from a command and not from a turn."""
    return _derive(f"edit/{owner}/{encode(command)}")


def retry_command_id(run: str, attempt: int) -> str:
    """Derive the id of the `consolidate` command that tries a deferred run again."""
    return _derive(f"command/{run}/retry/{attempt}")


def errand_command_id(run: str, kind: str, attempt: int) -> str:
    """Derive the id of a command that consolidation sends to itself after a run."""
    return _derive(f"command/{run}/after/{kind}/{attempt}")


def scheduled_command_id(owner: str, at: datetime) -> str:
    """Derive the id of the `consolidate` command that is scheduled for a time."""
    return _derive(f"command/schedule/{owner}/{at.astimezone(UTC).isoformat()}")


def digest_id(owner: str) -> str:
    """Derive the id of an owner's digest; there is one per owner."""
    return _derive(f"digest/{owner}")


def procedure_id(owner: str, name: str) -> str:
    """Derive the id of a procedure. The name identifies the procedure of an owner."""
    return _derive(f"procedure/{owner}/{encode(canonical(name))}")


def block_id(owner: str, name: str) -> str:
    """Derive the id of an owner's block. The name identifies the block of an owner."""
    return _derive(f"block/{owner}/{encode(canonical(name))}")


def holdings_id(session: str) -> str:
    """Derive the id of a session's holdings; there is one point per session."""
    return _derive(f"holdings/{session}")


def task_id(owner: str, command: str) -> str:
    """Derive the id of a task from the command that added it."""
    return _derive(f"task/{owner}/{encode(command)}")


def task_due_id(task: str, due_at: datetime) -> str:
    """Derive the id of the command and of the event for a task that is due at a time."""
    return _derive(f"due/{task}/{due_at.astimezone(UTC).isoformat()}")


def group_record_id(owner: str) -> str:
    """Derive the id of a group's record. `owner` is the key of the group as an owner."""
    return _derive(f"group/{owner}")


def archive_id(episode: str) -> str:
    """Derive the id of the row with an episode's original text."""
    return _derive(f"archive/{episode}")


def links_id(owner: str) -> str:
    """Derive the id of an owner's links; there is one point per owner."""
    return _derive(f"links/{owner}")


def summary_id(owner: str, session: str, last_turn_id: str) -> str:
    """Derive the observation id of a summary. A turn is summarised once, so the last turn identifies the summary."""
    return _derive(f"summary/{owner}/{session}/{encode(last_turn_id)}")


def observe_command_id(session: str, last_turn_id: str, attempt: int) -> str:
    return _derive(f"command/observe/{session}/{encode(last_turn_id)}/{attempt}")


def session_end_id(session: str, last_at: int) -> str:
    return _derive(f"command/sessions.end/{session}/{last_at}")


def session_trim_id(session: str, last_at: int) -> str:
    return _derive(f"command/sessions.trim/{session}/{last_at}")


def retraction_command_id(owner: str, retraction: str) -> str:
    """Derive the id of the command that takes a turn out of an owner's memory. `retraction`: id of the command that
    causes it."""
    return _derive(f"command/{owner}/retract/{encode(retraction)}")


def session_erasure_command_id(owner: str, erasure: str) -> str:
    """Derive the id of the command that takes a session out of an owner's memory. `erasure`: id of the command that
    causes it."""
    return _derive(f"command/{owner}/erase/{encode(erasure)}")


def kept_command_id(session: str, flush: str, n: int) -> str:
    """Derive the id of a command that creates episodes for a flush_important command; `flush` is the id of that
    command."""
    return _derive(f"command/flush/{session}/{encode(flush)}/{n}")


def edit_command_id(key: str, kind: str, idempotency_key: str) -> str:
    """Derive the id of an edit that its caller may repeat. `key` is the key of the owner or session."""
    return _derive(f"command/edit/{key}/{kind}/{encode(idempotency_key)}")


def request_hash(args: Mapping[str, Any], idempotency_key: str) -> str:
    """Return the hash that identifies a repeated edit with this key. The log does not have the key, so a secret in the
    arguments cannot be found by guessing."""
    text = json.dumps(args, sort_keys=True, ensure_ascii=True)
    return hmac.new(idempotency_key.encode("utf-8", "surrogatepass"), text.encode(), "sha256").hexdigest()


def moved_id(target: str, record: str) -> str:
    """Derive the id of a record that an import moves to another owner. `target`: the key of the owner, or the encoded
    tenant."""
    return _derive(f"moved/{target}/{record}")


def restore_command_id(source: str, args: Mapping[str, Any]) -> str:
    """Derive the id of a command of an import. It begins with the source, by which records of one import are known."""
    text = json.dumps(args, sort_keys=True, ensure_ascii=True)
    return f"restore/{source}/{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def imported_cause(subject: str, content: str) -> str:
    """Return the cause of an imported fact, from which its id follows: the same statement is always the same fact."""
    return f"import/{encode(subject)}/{content_hash(content)}"


def label_id(session: str, turn_id: str) -> str:
    return _derive(f"label/{session}/{turn_id}")


def session_label_id(session: str) -> str:
    """Derive the id of the label of an erased session."""
    return _derive(f"label/{session}")


def observed_id(session: str, turn_id: str) -> str:
    """Derive the `ce_id` of a record on memory.observations."""
    return _derive(f"observed/{session}/{encode(turn_id)}")


def recorded_id(owner: str, session: str, turn_id: str) -> str:
    """Derive the `ce_id` of a record on memory.episodes.recorded."""
    return _derive(f"recorded/{owner}/{session}/{encode(turn_id)}")


def is_derived(given: str) -> bool:
    """Return whether an id has the form of an id that memstream derives: a UUID. Commands may contain any id, but the
    vector store accepts UUIDs only."""
    try:
        return str(UUID(given)) == given
    except ValueError:
        return False


def user_hash(tenant_id: str, user_id: str) -> str:
    """Return the hash that names an erased user. Markers and receipts have no other name of the user."""
    return hashlib.sha256(f"memstream/erased/{join(tenant_id, user_id)}".encode()).hexdigest()


def erasure_id(user: str, previous: str) -> str:
    """Derive the id of a user's next erasure. `user`: hash of the user. `previous`: id of the erasure before, or "".

    Runs that begin at the same time therefore have the same erasure.
    """
    return _derive(f"erasure/{user}/{previous}")


def short_hash(text: str) -> str:
    """Return the first 8 bytes of SHA-256 in hex. Rows store known ids in this form."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8].hex()
