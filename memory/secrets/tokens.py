"""Credentials that tell themselves by their shape: private key blocks, JSON Web Tokens and connection strings."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from .findings import Finding

_KEY_MARK: Final = re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_LINE_END: Final = r"(?:[ \t]*(?:\r?\n|\\r\\n|\\n)[ \t>|]*)"
_KEY_BODY: Final = re.compile(
    rf"(?:{_LINE_END}|[ \t]+)*(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash): ?[^\n\\]{{0,200}}{_LINE_END}+)*"
    rf"(?:[A-Za-z0-9+/]{{16,}}={{0,2}}(?:{_LINE_END}|[ ])?)*"
    rf"(?:(?<=[\n ])[A-Za-z0-9+/]{{1,15}}={{0,2}}(?=[ \t]*(?:\r?\n|$)))?"
)
_JWT: Final = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){0,3}")
_URL: Final = re.compile(
    r"(?<![a-z0-9])[a-z][a-z0-9+.-]{1,30}://[^\s:@/'\"<>\[\]]{0,256}:(?P<password>[^\s@/'\"<>]{1,256}|\[[^\s@]{1,254}\])"
    r"@[^\s'\"<>`]{1,2048}",
    re.IGNORECASE,
)
_TRAILING: Final = ".,;:!?)]}*_"


def private_keys(text: str) -> Iterator[Finding]:
    """Yield blocks of private keys. One without an end reaches as far as its lines look like a key."""
    if "PRIVATE KEY" not in text:
        return
    begin: re.Match[str] | None = None
    for mark in _KEY_MARK.finditer(text):
        if mark[1] == "BEGIN":
            if begin is not None:
                yield _cut_off(text, begin)
            begin = mark
        elif begin is not None:
            yield Finding("private_key", begin.start(), mark.end())
            begin = None
    if begin is not None:
        yield _cut_off(text, begin)


def _cut_off(text: str, begin: re.Match[str]) -> Finding:
    body = _KEY_BODY.match(text, begin.end())
    return Finding("private_key", begin.start(), begin.end() + len(body[0].rstrip() if body else ""))


def json_web_tokens(text: str) -> Iterator[Finding]:
    """Yield JSON Web Tokens: the first part is a JSON object in base64url that names an algorithm."""
    if "eyJ" not in text:
        return
    for match in _JWT.finditer(text):
        head = match[0].partition(".")[0]
        try:
            header = base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
        except (binascii.Error, ValueError):
            continue
        if b'"' in header:
            yield Finding("jwt", match.start(), match.start() + len(match[0].rstrip(".")))


def connection_addresses(text: str) -> Iterator[Finding]:
    """Yield addresses that hold a password: `scheme://user:password@host`."""
    if "://" not in text:
        return
    for match in _URL.finditer(text):
        yield Finding("connection_string", match.start(), match.start() + len(match[0].rstrip(_TRAILING)))
