"""Traces of a user in stored records: does a record or a key name the user, or have a text that the user's memory had?

The user is given by hash. So a scan years later needs no id: it hashes the users that a record names.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Iterator, Mapping
from typing import get_args
from urllib.parse import unquote

from ..schemas import ids
from ..schemas.row_keys import INDEX
from ..schemas.turns import Scope

JsonTree = object
"""A decoded JSON value."""
_SCOPES = frozenset(get_args(Scope))
"""Second parts of owner keys. A session key has its user there."""
_RECORD = ("topic", "value")
"""Fields of a record inside a row. Its value is base64 of JSON."""


class UserTraces:
    """The search for one user of a tenant. `texts`: content hashes of the texts that the user's memory had."""

    def __init__(self, tenant_id: str, user_hash: str, texts: Collection[str] = ()) -> None:
        self._tenant_id = tenant_id
        self._first = ids.encode(tenant_id)
        self._hash = user_hash
        self._known: dict[str, bool] = {}
        self.texts = texts

    def is_user(self, user_id: str) -> bool:
        known = self._known.get(user_id)
        if known is None:
            known = self._known[user_id] = ids.user_hash(self._tenant_id, user_id) == self._hash
        return known

    def user_of_key(self, key: str) -> str | None:
        """Return the user if a key, or a key inside it, is a session key of the user, or the key of the user as an
        owner."""
        parts = key.rpartition(INDEX)[2].split("/")
        for place in range(len(parts) - 2):
            if parts[place] != self._first:
                continue
            scope, owner = parts[place + 1], parts[place + 2]
            named = unquote(owner if scope == "user" else scope)
            if (scope == "user" or scope not in _SCOPES) and self.is_user(named):
                return named
        return None

    def names(self, value: JsonTree) -> bool:
        """Return whether a decoded JSON value names the user."""
        return any(self._is_named(each) for each in _parts(value))

    def texts_of(self, value: JsonTree) -> Iterator[str]:
        """Yield the content hash of each text of a record."""
        for each in _parts(value):
            if isinstance(each, Mapping):
                for name in ("content", "quote", "evidence", "text"):
                    if isinstance(text := each.get(name), str) and text:
                        yield ids.content_hash(text)

    def has_text(self, value: JsonTree) -> bool:
        return bool(self.texts) and any(each in self.texts for each in self.texts_of(value))

    def _is_named(self, part: JsonTree) -> bool:
        if isinstance(part, str):
            return "/" in part and self.user_of_key(part) is not None
        if not isinstance(part, Mapping):
            return False
        if isinstance(user := part.get("user_id"), str) and self.is_user(user):
            return True
        owner = part.get("id") if part.get("scope") == "user" else None
        return isinstance(owner, str) and self.is_user(owner)


def decoded_json(value: bytes | None) -> JsonTree:
    """Return a decoded JSON value, or None if it is not JSON."""
    try:
        return None if value is None else json.loads(value)
    except (ValueError, RecursionError):
        return None


def _parts(value: JsonTree) -> Iterator[JsonTree]:
    """Yield a decoded JSON value and all values in it, also in the records that a row has as base64."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, Mapping):
            waiting += part.values()
            if all(isinstance(part.get(name), str) for name in _RECORD):
                waiting.append(_unpacked(part["value"]))
        elif isinstance(part, list):
            waiting += part


def _unpacked(value: str) -> JsonTree:
    try:
        return decoded_json(base64.b64decode(value, validate=True))
    except (binascii.Error, ValueError):
        return None
