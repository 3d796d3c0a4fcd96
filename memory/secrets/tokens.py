"""Credentials recognisable by format: private key blocks, JSON Web Tokens and connection strings."""

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
    r"(?<![a-z0-9])[a-z][a-z0-9+.-]{1,30}://[^\s:@/'\"<>\[\]]{0,256}:(?P<password>[^\s@/'\"<>]{1,256}|"
    r"\[[^\s@]{1,254}\])"
    r"@[^\s'\"<>`]{1,2048}",
    re.IGNORECASE,
)
_VARIABLE: Final = re.compile(r"\$[A-Za-z_{(]|\{\{|<|%[A-Za-z_]+%|\[[a-z_]+\]|[*x.\u2022]+$")
"""Texts in place of a password: a variable or a placeholder."""
_JDBC: Final = re.compile(r"(?<![a-z])jdbc:[^\s\"'<>`]{1,512}?[?;&](?:password|pwd)=[^\s\"'<>`]{1,512}", re.IGNORECASE)
_SECRET_SETTING: Final = re.compile(r"(?:password|passwd|pwd|key|signature|secret) ?=", re.IGNORECASE)
_SETTING: Final = re.compile(
    r"(?P<name>(?:data source|initial catalog|user id|user name|persist security info|integrated security|"
    r"[a-z_][\w.-]{0,40}))"
    r" ?= ?(?P<value>[^;\n\"'`=]{1,128}(?=;)|[^;\s\"'`]{1,512})",
    re.IGNORECASE,
)
_SECRET_NAME: Final = re.compile(
    r"(?:\w{0,24}?)(?:password|passwd|pwd|accountkey|sharedaccesskey|sharedaccesssignature|secret|"
    r"clientsecret|accesskey)",
    re.IGNORECASE,
)
_TRAILING: Final = ".,;:!?)]}*_"


def private_keys(text: str) -> Iterator[Finding]:
    """Yield private key blocks. A block without an end continues as long as its lines look like a key."""
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
    """Yield JSON Web Tokens: the first part is base64url and decodes to JSON-like text."""
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


def connection_strings(text: str) -> Iterator[Finding]:
    """Yield connection strings with a password: `scheme://user:password@host`, `Server=…;Password=…`, JDBC."""
    if "://" in text:
        for match in _URL.finditer(text):
            if not _VARIABLE.match(match["password"]):
                yield Finding("connection_string", match.start(), match.start() + len(match[0].rstrip(_TRAILING)))
    if "jdbc:" in text:
        for match in _JDBC.finditer(text):
            yield Finding("connection_string", match.start(), match.start() + len(match[0].rstrip(_TRAILING)))
    if ";" in text and "=" in text:
        read = 0
        for name in _SECRET_SETTING.finditer(text):
            if name.start() < read:
                continue
            start = text.rfind("\n", 0, name.start()) + 1
            read = end if (end := text.find("\n", name.end())) != -1 else len(text)
            yield from _settings(text, start, read)


def _settings(text: str, start: int, end: int) -> Iterator[Finding]:
    """Yield runs of `;`-separated settings in a line of the text when one of them is a password."""
    first: int | None = None
    place, last, has_secret, count = start, start, False, 0
    for part in [*text[start:end].split(";"), ""]:
        setting = _SETTING.search(part)
        if setting is None or (first is not None and part[: setting.start()].strip(" \"'")):
            if first is not None and has_secret and count > 1:
                yield Finding("connection_string", first, last)
            first, has_secret, count = None, False, 0
        if setting is not None:
            if first is None:
                first = place + setting.start()
            last = place + setting.end()
            has_secret = has_secret or (
                _SECRET_NAME.fullmatch(setting["name"].strip()) is not None and not _VARIABLE.match(setting["value"])
            )
            count += 1
        place += len(part) + 1
