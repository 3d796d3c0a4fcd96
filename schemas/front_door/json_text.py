"""Parser of JSON from outside. `parse_json` decodes bytes. `repair` replaces incomplete characters in the texts of a
value, and removes NUL and byte order marks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

DEPTH_MAX: Final = 200
"""Maximum depth of lists and objects. Deeper JSON is refused, because recursive functions read it."""
BOM: Final = b"\xef\xbb\xbf"
REPLACEMENT: Final = "\ufffd"

_CUT: Final = re.compile(
    rb"(?:\xe0[\xa0-\xbf]|[\xe1-\xef][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]?|[\xf1-\xf4][\x80-\xbf]{1,2})(?![\x80-\xbf])"
)
"""Start of a character of three or four bytes whose end is cut off. At least two bytes must match, because a single
byte may be a Latin-1 character."""
_REMOVED: Final = re.compile("[\0\ufeff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NOT_JSON: Final = (
    (b"\xff\xfe", "is UTF-16 or UTF-32: encode it as UTF-8"),
    (b"\xfe\xff", "is UTF-16: encode it as UTF-8"),
    (b"\0\0\xfe\xff", "is UTF-32: encode it as UTF-8"),
    (b"\x1f\x8b", "is gzip: set compression.type on the producer, and send the value itself uncompressed"),
    (b"\x28\xb5\x2f\xfd", "is zstd: set compression.type on the producer, and send the value itself uncompressed"),
    (b"\x04\x22\x4d\x18", "is lz4: set compression.type on the producer, and send the value itself uncompressed"),
    (b"Obj\x01", "is an Avro file: send JSON, without an Avro serializer"),
    (b"\xac\xed\0\x05", "is a serialized Java object: set value.serializer to a JSON or string serializer"),
    (b"\x80\x04", "is a Python pickle: encode it with json.dumps"),
    (b"\x80\x05", "is a Python pickle: encode it with json.dumps"),
    (b"<", "is XML: send JSON"),
)
"""Prefixes of values that are not JSON, with a description and a remedy."""


class NotJson(ValueError):
    """Bytes that are not JSON. The message says what they are, without their content."""


@dataclass(frozen=True, slots=True)
class RepairedJson:
    """A JSON value that can be encoded as UTF-8."""

    value: JsonValue
    characters: int
    """Number of replaced or removed characters."""


def parse_json(raw: bytes, *, constant: Callable[[str], float] = float) -> JsonValue:
    """Parse JSON. A byte order mark before it and NUL bytes after it are ignored, and line breaks within texts are
    allowed. Texts may contain incomplete characters (see `repair`). `constant` converts NaN, Infinity and -Infinity.
    Raise NotJson, and the errors of `constant`."""
    text = _text_of(raw)
    if not text.strip():
        raise NotJson("is empty")
    return parse_text(text, constant=constant)


def parse_text(text: str, *, constant: Callable[[str], float] = float) -> JsonValue:
    """Parse decoded JSON text. Raise NotJson, and the errors of `constant`."""
    try:
        value: JsonValue = json.loads(text, strict=False, parse_constant=constant)
    except NotJson:
        raise
    except RecursionError:
        raise NotJson("is nested too deeply") from None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise NotJson("has more than one JSON value: send one turn a record") from None
        raise NotJson(f"is not valid JSON: {error}") from None
    except ValueError:  # an integer with thousands of digits
        raise NotJson("is not valid JSON: a number has too many digits") from None
    return value


def _text_of(raw: bytes) -> str:
    raw = raw.removeprefix(BOM).rstrip(b"\0")
    for beginning, what in _NOT_JSON:
        if raw.startswith(beginning):
            raise NotJson(what)
    if raw[1:2] == b"\0" or raw[:1] == b"\0":
        raise NotJson("is UTF-16 or binary: encode it as JSON in UTF-8")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        pass
    try:  # a character cut in bytes, or a surrogate pair encoded as two characters
        return _CUT.sub(REPLACEMENT.encode(), raw).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise NotJson(f"is not UTF-8 (at byte {error.start}): let the producer encode texts as UTF-8") from None


def repair(value: JsonValue, *, keep: Collection[str] = ()) -> RepairedJson:
    """Replace incomplete characters by U+FFFD, and remove NUL and byte order marks. Text fields in `keep` stay
    unchanged. Raise NotJson for a value that is nested too deeply."""
    repairer = _Repairer()
    if not isinstance(value, dict) or not keep:
        return RepairedJson(repairer.value(value, 0), repairer.characters)
    fields = {
        repairer.text(name): each if name in keep and isinstance(each, str) else repairer.value(each, 1)
        for name, each in value.items()
    }
    return RepairedJson(fields, repairer.characters)


def repair_text(text: str) -> tuple[str, int]:
    """Return the text without incomplete characters, NUL and byte order marks, and the number of replaced or removed
    characters."""
    if text.isascii() and "\0" not in text:
        return text, 0
    removed = len(text)
    text = _REMOVED.sub("", text)
    removed -= len(text)
    if _SURROGATE.search(text) is None:
        return text, removed
    before = text.count(REPLACEMENT)
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text, removed + text.count(REPLACEMENT) - before


class _Repairer:
    def __init__(self) -> None:
        self.characters = 0

    def text(self, text: str) -> str:
        text, characters = repair_text(text)
        self.characters += characters
        return text

    def value(self, value: JsonValue, depth: int) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if not isinstance(value, dict | list):
            return value
        if depth >= DEPTH_MAX:
            raise NotJson("is nested too deeply")
        if isinstance(value, list):
            return [self.value(each, depth + 1) for each in value]
        return {self.text(name): self.value(each, depth + 1) for name, each in value.items()}
