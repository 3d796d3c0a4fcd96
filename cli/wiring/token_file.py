"""The file of bearer tokens: its entries for commands, the removal of one entry, and the check of `doctor`."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from ...adapters.durable_files import write_atomically
from ...api.credentials import TokenEntry, read_entries
from ...schemas.text_files import text_of
from ..errors import CommandFailed, usage
from .checks import Check
from .settings import Settings

ID_DIGITS: Final = 12
"""Number of digits of a token's SHA-256 that name the token in commands."""
SOON: Final = timedelta(days=7)
"""Remaining life of a token below which `doctor` fails."""
NAMED: Final = 5
"""Maximum number of tokens that one check names."""


@contextlib.contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """Turn errors of the file into CommandFailed (exit 2) that names the file."""
    try:
        yield
    except OSError as error:
        raise usage(f"MEMSTREAM_TOKENS={path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise usage(f"MEMSTREAM_TOKENS={path}: {error}") from error


def token_file(settings: Settings) -> Path:
    if settings.tokens is None:
        raise usage("MEMSTREAM_TOKENS is not set: set it to the token file that `memstream serve` reads")
    return settings.tokens


def id_of(entry: TokenEntry) -> str:
    return entry.sha256[:ID_DIGITS]


def read_tokens(path: Path) -> Sequence[TokenEntry]:
    with errors_named(path):
        return read_entries(path.read_bytes())


def remove_token(path: Path, name_or_id: str) -> TokenEntry:
    """Remove the entry with this name or id from the file, and return it. Other lines of the file stay as they are.

    Raises CommandFailed (exit 2) if no entry or several entries match, if no token would be left, or if the file cannot
    be replaced.
    """
    with errors_named(path):
        value = path.read_bytes()
        entries = read_entries(value)
        entry = _named(entries, name_or_id)
        if len(entries) == 1:
            raise usage(
                "this is the only token of the file, and serve ignores a file without tokens: append another one first "
                "(memstream tokens new), or stop serve"
            )
        text = _without(text_of(value), entries.index(entry))
        if not _has_exactly(text, [each for each in entries if each is not entry]):
            raise usage(f"the entry of {entry.name!r} is not a [[token]] table of its own: remove it by an editor")
    _replace(path.resolve(), text)
    return entry


def _replace(target: Path, text: str) -> None:
    """Replace the file and keep its permissions. Another owner is refused: `serve` could not read the result."""
    try:
        found = target.stat()
        if found.st_uid != os.geteuid():
            raise usage(f"{target} belongs to another account: run the command as that account")
        write_atomically(target, text.encode(), mode=stat.S_IMODE(found.st_mode))
    except OSError as error:
        raise usage(f"{target} cannot be replaced: {error.strerror or error}") from error


def _named(entries: Sequence[TokenEntry], name_or_id: str) -> TokenEntry:
    found = [entry for entry in entries if name_or_id in (entry.name, id_of(entry))]
    if not found:
        raise usage(f"no token has the name or id {name_or_id!r}; `memstream tokens list` shows them")
    if len(found) > 1:
        ids = ", ".join(id_of(entry) for entry in found)
        raise usage(f"{len(found)} tokens have the name {name_or_id!r}; give the id of one: {ids}")
    return found[0]


def _has_exactly(text: str, entries: Sequence[TokenEntry]) -> bool:
    try:
        return list(read_entries(text.encode())) == entries
    except ValueError:
        return False


def _without(text: str, index: int) -> str:
    """Return the text without its table number `index`, or the text itself if there are fewer tables."""
    lines = text.splitlines(keepends=True)
    heads = [n for n, line in enumerate(lines) if line.partition("#")[0].strip() == "[[token]]"]
    if index >= len(heads):
        return text
    end = heads[index + 1] if index + 1 < len(heads) else len(lines)
    while not lines[end - 1].partition("#")[0].strip():
        end -= 1  # comments above the next table stay
    return "".join(lines[: heads[index]] + lines[end:])


def state_of(entry: TokenEntry, now: datetime) -> str:
    return "expired" if entry.expired(now) else "valid"


def check_tokens(settings: Settings, now: datetime) -> list[Check]:
    """Check the token file, if the settings name one. A token that expires within SOON fails the check."""
    if settings.tokens is None:
        return []
    try:
        entries = read_tokens(settings.tokens)
    except CommandFailed as error:
        return [Check("tokens", False, str(error), "correct the file; docs/reference/http.md shows its format")]
    expired = [entry for entry in entries if entry.expired(now)]
    soon = [entry for entry in entries if entry.expires_at and now < entry.expires_at <= now + SOON]
    never = sum(entry.expires_at is None for entry in entries)
    detail = f"{len(entries)} tokens, {len(expired)} expired, {never} without expires_at"
    if not soon:
        return [Check("tokens", True, detail)]
    named = ", ".join(f"{entry.name} at {entry.expires_at:%Y-%m-%d %H:%M} UTC" for entry in soon[:NAMED])
    more = f" and {len(soon) - NAMED} more" if len(soon) > NAMED else ""
    fix = "create new tokens (memstream tokens new), give them to the callers, then revoke the old ones"
    return [Check("tokens", False, f"{detail}; {len(soon)} expire within {SOON.days} days: {named}{more}", fix)]
