"""A page as a request with curl and as a command of memstream, to copy. The texts have no credential."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from pydantic import BaseModel

from ...schemas.turns import Owner
from ..credentials import bearer_token
from .pages import NOTICE, address
from .sign_in import behind_tls

VARIABLE = "MEMSTREAM_TOKEN"
"""Variable of the reader's shell with the token."""


@dataclass(frozen=True, slots=True)
class AsCommands:
    """`curl` is None when no single route of the REST API has the page."""

    curl: str | None
    cli: str


def as_commands(
    request: Request, route: str | None, query: BaseModel, *, cli: Sequence[str | None], sent: bool = False
) -> AsCommands:
    """Return the commands of a page. `route` is the path below /v1. `sent`: the query is the body of a POST.

    `cli` is the command line: a None removes the option before it.
    """
    given = query.model_dump(mode="json", exclude_unset=True, exclude={NOTICE})
    curl = None if route is None else _curl(request, route, given, sent=sent)
    return AsCommands(curl, shlex.join(["memstream", *_present(cli)]))


def owner_arguments(owner: Owner | None) -> list[str]:
    if owner is None:
        return []
    return ["--user", owner.id] if owner.scope == "user" else ["--scope", owner.scope, "--id", owner.id]


def _curl(request: Request, route: str, given: Mapping[str, Any], *, sent: bool) -> str:
    scheme = "https" if behind_tls(request) else "http"
    base = f"{scheme}://{request.headers.get('host', 'localhost')}{request.scope.get('root_path', '')}/v1"
    words = ["curl"]
    if bearer_token(request.headers) is not None:
        words.append(f'-H "Authorization: Bearer ${VARIABLE}"')
    if sent:
        words += ["-H", shlex.quote("Content-Type: application/json"), "-d", shlex.quote(json.dumps(given))]
    words.append(shlex.quote(address(base, route, {} if sent else given)))
    return " ".join(words)


def _present(words: Sequence[str | None]) -> list[str]:
    kept: list[str] = []
    for word in words:
        if word is None:
            kept.pop()
        else:
            kept.append(word)
    return kept
