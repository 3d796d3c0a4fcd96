"""Request fields of one model: the settings in the table `[models.NAME.request]`, added to each of its calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue, TypeAdapter, ValidationError

OURS: Final = frozenset({"model", "messages", "response_format", "n"})
"""Fields that memstream sets itself."""
SECRET_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key", "cookie"}
)
OWN_HEADERS: Final = frozenset({"host", "content-type", "content-length", "content-encoding", "transfer-encoding"})
QUERY_NAMES: Final = frozenset({"api-version"})
"""Names that are always query parameters."""
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_BODY: Final[TypeAdapter[dict[str, JsonValue]]] = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class RequestFields:
    """Fields of the body, headers, and query parameters."""

    body: Mapping[str, JsonValue] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all fields. Values must not be logged."""
        return (*self.body, *self.headers, *self.query)


def request_fields(table: object, *, path: str) -> tuple[RequestFields, list[str]]:
    """Read the fields from a table. Return the fields and a list of problems. Each problem begins with the path of its
    field."""
    if not isinstance(table, Mapping):
        return RequestFields(), [f"{path}: expected a table [{path}]"]
    problems: list[str] = []
    headers = _texts(table.get("headers", {}), f"{path}.headers", problems)
    query = _texts(table.get("query", {}), f"{path}.query", problems)
    query |= _texts({name: table[name] for name in QUERY_NAMES if name in table}, path, problems)
    for name, value in headers.items():
        if name.lower() in SECRET_HEADERS:
            problems.append(f"{path}.headers.{name}: secrets belong in the environment, as OPENAI_API_KEY")
        elif name.lower() in OWN_HEADERS:
            problems.append(f"{path}.headers.{name}: memstream sets this header")
        elif not (_HEADER_NAME.fullmatch(name) and value.isascii() and value.isprintable()):
            problems.append(f"{path}.headers.{name}: expected the name and the value of an HTTP header")
    body = {name: value for name, value in table.items() if name not in ("headers", "query", *QUERY_NAMES)}
    problems += [f"{path}.{name}: memstream sets this field" for name in sorted(OURS & body.keys())]
    try:
        body = _BODY.validate_python(body)
    except ValidationError as error:
        wrong = sorted({str(item["loc"][0]) for item in error.errors(include_input=False, include_url=False)})
        problems += [f"{path}.{name}: expected a JSON value" for name in wrong]
    return RequestFields(body, headers, query), problems


def _texts(table: object, path: str, problems: list[str]) -> dict[str, str]:
    if not isinstance(table, Mapping):
        problems.append(f"{path}: expected a table [{path}]")
        return {}
    problems += [f"{path}.{name}: expected a text" for name, value in table.items() if not isinstance(value, str)]
    return {str(name): value for name, value in table.items() if isinstance(value, str)}
