"""Reading of text files that people write: TOML and JSON of settings, tokens and policies."""

from __future__ import annotations

import codecs
import tomllib
from typing import Any, Final

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def text_of(value: bytes) -> str:
    """Decode a file as UTF-8; ignore a byte order mark at its beginning. Raise ValueError when the file has another
    encoding; the message says so."""
    if value.startswith(_UTF_16) or b"\0" in value[:4]:
        raise ValueError("is UTF-16, not UTF-8 (Windows PowerShell writes it with > and >>): save the file as UTF-8")
    try:
        return value.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = value.count(b"\n", 0, error.start) + 1
        raise ValueError(f"is not UTF-8: byte 0x{value[error.start]:02x} in line {line}. Save it as UTF-8") from None


def toml_of(value: bytes) -> dict[str, Any]:
    """Parse a TOML file. Raise ValueError with the reason, without the file's content."""
    text = text_of(value)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not valid TOML: {error}") from None
