"""Request bodies. This module reads them instead of the framework: in pieces, never beyond the limit, after the
credential was checked, and with JSON's own types (a number is not a string)."""

from __future__ import annotations

import json
from typing import NoReturn, TypeVar

from fastapi import Request
from pydantic import BaseModel, JsonValue, ValidationError

from .problems import field_errors, invalid, invalid_field, too_large, unsupported_media_type

M = TypeVar("M", bound=BaseModel)


async def read_body(request: Request, *, limit: int) -> bytes:
    """Return the bytes of the body. Problems: 413, 415.

    A body without a content type is refused too: a web page can send one to another site without asking.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise unsupported_media_type("send JSON, with Content-Type: application/json")
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:20]) > limit:
        raise _larger(limit)
    taken = bytearray()
    async for piece in request.stream():
        taken += piece
        if len(taken) > limit:
            raise _larger(limit)
    return bytes(taken)


def _larger(limit: int) -> Exception:
    return too_large(f"the body has more than {limit} bytes")


def decode_model(model: type[M], body: bytes) -> M:
    """Decode the body as this model, with strict types. Problem: 422 that names the fields."""
    try:
        return model.model_validate_json(body, strict=True)
    except ValidationError as error:
        raise invalid(field_errors(error)) from None


def decode_json(body: bytes) -> JsonValue:
    """Decode any JSON. Problem: 422."""
    try:
        value: JsonValue = json.loads(body.decode(), parse_constant=_refused)
    except UnicodeDecodeError:
        raise invalid_field("body", "is not UTF-8") from None
    except RecursionError:
        raise invalid_field("body", "is nested too deeply") from None
    except ValueError as error:  # JSONDecodeError, or an integer with thousands of digits
        raise invalid_field("body", f"is not valid JSON: {error}") from None
    return value


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")
