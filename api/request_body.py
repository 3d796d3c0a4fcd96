"""Reader of request bodies, used instead of the framework's reader.

The body is read after the check of the credential, in pieces, up to the limit. A gzip body is decompressed. JSON types
are strict: a number is not a string.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from typing import Final, NoReturn, TypeVar

from fastapi import Request
from pydantic import BaseModel, JsonValue, ValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope

from ..schemas.front_door.json_text import NotJson, parse_json
from .problems import field_errors, invalid, invalid_field, too_large, unsupported_media_type

M = TypeVar("M", bound=BaseModel)

ENCODING: Final = "content-encoding"
GZIP: Final = frozenset({"gzip", "x-gzip"})
GZIP_FORMAT: Final = zlib.MAX_WBITS | 16


async def read_body(request: Request, *, limit: int, also: Collection[str] = ()) -> bytes:
    """Return the decompressed bytes of the body. Raises Problem: 413, 415, or 422 for invalid gzip. `also`: content
    types that are accepted besides JSON.

    A body without a content type is refused, too: a web page can send such a body to another site without a CORS
    preflight.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    if not is_json and kind not in also:
        raise unsupported_media_type("send JSON, with Content-Type: application/json")
    return await _read(request, limit=limit)


async def inflated(scope: Scope, receive: Receive, *, limit: int) -> tuple[Scope, Receive]:
    """Return the request with a decompressed body, for an application that reads bodies itself.

    A body without a content encoding is not read. Raises Problem like `read_body`.
    """
    if ENCODING not in Headers(scope=scope):
        return scope, receive
    body: bytes | None = await _read(Request(scope, receive), limit=limit)
    headers = MutableHeaders(raw=list(scope["headers"]))
    del headers[ENCODING]
    headers["content-length"] = str(len(body or b""))

    async def replayed() -> Message:
        nonlocal body
        if body is None:
            return await receive()
        message = {"type": "http.request", "body": body, "more_body": False}
        body = None
        return message

    return {**scope, "headers": headers.raw}, replayed


async def _read(request: Request, *, limit: int) -> bytes:
    inflate = _inflating(request.headers, limit)
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:20]) > limit:
        raise _larger(limit)
    taken = bytearray()
    sent = 0
    async for piece in request.stream():
        sent += len(piece)
        taken += piece if inflate is None else inflate.feed(piece, room=limit - len(taken))
        if max(sent, len(taken)) > limit:
            raise _larger(limit)
    if inflate is not None and not inflate.ended:
        raise invalid_field("body", "ends before its gzip data does")
    return bytes(taken)


def _inflating(headers: Headers, limit: int) -> _Gzip | None:
    """Return the decompressor of the body, or None without an encoding. Raises Problem (415) for other encodings."""
    named = [each.strip().lower() for line in headers.getlist(ENCODING) for each in line.split(",")]
    encodings = [each for each in named if each not in ("", "identity")]
    if not encodings:
        return None
    if len(encodings) > 1 or encodings[0] not in GZIP:
        raise unsupported_media_type(
            f"send the body without an encoding, or with Content-Encoding: gzip; at most {limit} bytes in either form",
            headers={"Accept-Encoding": "gzip"},
        )
    return _Gzip()


class _Gzip:
    """Decompressor of one gzip member. A second member is refused: thousands of empty members would waste time."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(GZIP_FORMAT)

    @property
    def ended(self) -> bool:
        return self._stream.eof

    def feed(self, piece: bytes, *, room: int) -> bytes:
        """Return the decompressed data of a piece, at most one byte more than `room`. This one byte shows the caller
        that the body is too large."""
        try:
            data = self._stream.decompress(piece, room + 1)
        except zlib.error as error:
            raise invalid_field("body", f"is not valid gzip: {error}") from None
        if self._stream.unused_data:
            raise invalid_field("body", "has data after the end of its gzip data")
        return data


def _larger(limit: int) -> Exception:
    return too_large(f"the body has more than {limit} bytes")


def decode_model(model: type[M], body: bytes) -> M:
    """Decode the body as this model, with strict types. Raises Problem (422) that names the fields."""
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        raise invalid(field_errors(error)) from None


def decode_json(body: bytes) -> JsonValue:
    """Decode any JSON in the same way as records of the log. Raises Problem (422)."""
    try:
        return parse_json(body, constant=_refused)
    except NotJson as error:
        raise invalid_field("body", str(error)) from None


def _refused(constant: str) -> NoReturn:
    raise NotJson(f"is not valid JSON: {constant} is not a JSON number")
