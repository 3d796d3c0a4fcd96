"""Decoding of a server's answers, and long names of request fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import httpx
from pydantic import BaseModel, JsonValue, ValidationError

from .errors import Misconfigured

SHORT = ("tenant", "user", "session")
M = TypeVar("M", bound=BaseModel)


def long_names(fields: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the fields under their long names: `tenant` is short for `tenant_id`.

    Raises TypeError if both names of a field are given.
    """
    for short in SHORT:
        if short in fields and f"{short}_id" in fields:
            raise TypeError(f"{short} is short for {short}_id: give one of them")
    return {f"{name}_id" if name in SHORT else name: value for name, value in fields.items()}


def decode(model: type[M], answer: httpx.Response) -> M:
    """Decode an answer as `model`. Raises Misconfigured if the answer does not fit, because then another server is at
    this address."""
    try:
        return model.model_validate_json(answer.content, extra="allow")
    except ValidationError as error:
        raise Misconfigured(f"{answer.url} does not answer as memstream: {error.error_count()} errors") from None
