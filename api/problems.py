"""Errors as problem details (RFC 9457, `application/problem+json`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Protocol
from urllib.parse import quote

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from ..schemas.errors import NoShare, Poison, StageError, Transient
from ..tools.audit import audit

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
URN = "urn:memstream:problem:"
TYPES = frozenset({"str", "tuple[ContentPart, ...]"})
"""Names that pydantic adds to the path of an error in a message's content. They name the types that pydantic tried, not
fields."""
CHALLENGE = 'Bearer realm="memstream"'
METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
ERRORS_MAX = 20
"""Maximum number of errors in an answer."""


class FieldError(BaseModel):
    """Error of one field."""

    model_config = ConfigDict(extra="forbid")

    field: str
    """Path of the field, joined by dots: `messages.0.role`. In a list of turns, the path begins with the index of the
    turn."""
    detail: str


class MissingPart(BaseModel):
    """Part of memory that did not answer."""

    model_config = ConfigDict(extra="forbid")

    part: str
    why: str


class ProblemDetails(BaseModel):
    """Body of every error."""

    model_config = ConfigDict(extra="forbid")

    type: str
    """`urn:memstream:problem:<name>`. Programs should use this value to distinguish errors."""
    title: str
    status: int
    detail: str
    """Cause and remedy, for people."""
    instance: str
    """Path of the request."""
    errors: list[FieldError] = []
    missing: list[MissingPart] = []


class Problem(Exception):
    """Error that ends the request. `name` is the last part of the type's URN."""

    def __init__(
        self,
        status: HTTPStatus,
        name: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        missing: Sequence[MissingPart] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.name = name
        self.detail = detail
        self.errors = tuple(errors)
        self.missing = tuple(missing)
        self.headers = dict(headers or {})
        self.who: str | None = None
        """Name of the caller, for the audit log, if the request has no other."""

    def details(self, path: str) -> ProblemDetails:
        return ProblemDetails(
            type=URN + self.name,
            title=self.status.phrase,
            status=int(self.status),
            detail=self.detail,
            instance=quote(path),
            errors=list(self.errors),
            missing=list(self.missing),
        )

    def response(self, path: str) -> JSONResponse:
        body = self.details(path).model_dump()
        return JSONResponse(body, int(self.status), headers=self.headers, media_type=MEDIA_TYPE)


class Missed(Protocol):
    """Report of a service about a part of memory that did not answer."""

    @property
    def part(self) -> str: ...

    @property
    def why(self) -> str: ...


def missing_parts(missed: Iterable[Missed]) -> list[MissingPart]:
    return [MissingPart(part=each.part, why=each.why) for each in missed]


# ------------------------------------------------------------------------------------------------ kinds of problems
def unauthorized(detail: str, *, challenge: str = CHALLENGE) -> Problem:
    return Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", detail, headers={"WWW-Authenticate": challenge})


def forbidden(detail: str) -> Problem:
    return Problem(HTTPStatus.FORBIDDEN, "forbidden", detail)


def not_found(detail: str) -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, "not-found", detail)


def gone(detail: str) -> Problem:
    return Problem(HTTPStatus.GONE, "gone", detail)


def too_large(detail: str) -> Problem:
    return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", detail)


def headers_too_large(limit: int) -> Problem:
    detail = f"the address and the headers have more than {limit} bytes"
    return Problem(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers-too-large", detail)


def unsupported_media_type(detail: str, *, headers: Mapping[str, str] | None = None) -> Problem:
    return Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", detail, headers=headers)


def invalid(errors: Sequence[FieldError]) -> Problem:
    """Return the problem of a request with these invalid fields (at least one)."""
    detail = f"{errors[0].field}: {errors[0].detail}"
    if len(errors) > 1:
        detail += f"; and {len(errors) - 1} more"
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", detail, errors=errors[:ERRORS_MAX])


def invalid_field(field: str, detail: str) -> Problem:
    """Return the problem of a request with one invalid field."""
    return invalid([FieldError(field=field, detail=detail)])


def busy(detail: str, *, retry_after: int) -> Problem:
    """Return the problem of a request above the server's limit."""
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", detail, headers={"Retry-After": str(retry_after)})


def too_many(detail: str, *, retry_after: int) -> Problem:
    """Return the problem of a request above the caller's limit."""
    headers = {"Retry-After": str(retry_after)}
    return Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", detail, headers=headers)


def silent(missing: Sequence[MissingPart], *, retry_after: int) -> Problem:
    """Return the problem of a read in which no part of memory answered."""
    return unavailable("no part of memory answered; `missing` names them", retry_after=retry_after, missing=missing)


def unavailable(detail: str, *, retry_after: int, missing: Sequence[MissingPart] = ()) -> Problem:
    """Return the problem of a service that does not answer this server."""
    headers = {"Retry-After": str(retry_after)}
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail, missing=missing, headers=headers)


def field_errors(
    error: ValidationError | RequestValidationError, *, before: Sequence[str | int] = ()
) -> list[FieldError]:
    """Return the errors by field, without values, because values may be private. `before` precedes each path."""
    if isinstance(
        error, RequestValidationError
    ):  # paths of this error begin with the kind of the parameter: query, path or header
        found = [(item["loc"][1:], item["msg"]) for item in error.errors()]
    else:
        found = [(item["loc"], item["msg"]) for item in error.errors(include_input=False)]
    return [
        FieldError(
            field=".".join(str(part) for part in (*before, *path) if part not in TYPES) or "body",
            detail=str(message).removeprefix("Value error, "),
        )
        for path, message in found
    ]


# ------------------------------------------------------------------------------------------------ from exceptions
def install(app: FastAPI, *, retry_after: int) -> None:
    """Install handlers that answer every exception of a route with problem details."""

    async def problem(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, Problem)
        audit_denied(error, request)
        return error.response(request.url.path)

    async def validation(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return invalid(field_errors(error)).response(request.url.path)

    async def http(request: Request, error: Exception) -> JSONResponse:
        """Answer an error of the router: an unknown path or method."""
        assert isinstance(error, HTTPException)
        status = HTTPStatus(error.status_code)
        name = status.phrase.lower().replace(" ", "-")
        detail = f"{request.method} {request.url.path}: {error.detail}"
        headers = dict(error.headers or {})
        if status is HTTPStatus.METHOD_NOT_ALLOWED and (methods := _methods(app, request)):
            headers["Allow"] = methods
        return Problem(status, name, detail, headers=headers).response(request.url.path)

    async def stage_error(request: Request, error: Exception) -> JSONResponse:
        """Answer an error of a port. For an outage, the answer has the remedy. For a broken invariant, only the log has
        the details."""
        assert isinstance(error, StageError)
        return of_port(error, retry_after=retry_after).response(request.url.path)

    async def unknown(request: Request, error: Exception) -> JSONResponse:
        """Answer an unexpected exception. The server logs it with its traceback."""
        return internal().response(request.url.path)

    app.add_exception_handler(Problem, problem)
    app.add_exception_handler(RequestValidationError, validation)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(StageError, stage_error)
    app.add_exception_handler(Exception, unknown)


def audit_denied(problem: Problem, request: Request, *, route: str = "") -> None:
    """Write a line to the audit log if the problem denies the request. `request.state.caller` names the caller, and
    `request.state.tenant` is the caller's only tenant."""
    if problem.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        route = getattr(request.scope.get("route"), "path", route)
        who = problem.who or str(getattr(request.state, "caller", "unknown"))
        tenant: str | None = getattr(request.state, "tenant", None)
        audit(f"{request.method} {route}".strip(), who=who, tenant_id=tenant, owner=None, result="denied")


def _methods(app: FastAPI, request: Request) -> str:
    """Return all methods of a path. The router's own answer has only the methods of the first matching route.

    A path may match a second route: `/v1/working/advance` also matches `/v1/working/{entry_id}`. The methods of the
    second route are excluded.
    """
    template = getattr(request.scope.get("route"), "path_format", "")
    documented = {method.upper() for method in app.openapi()["paths"].get(template, ())}
    if "GET" in documented:
        documented.add("HEAD")
    return ", ".join(
        method
        for method in METHODS
        if (not documented or method in documented)
        and any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in app.routes)
    )


def of_port(error: StageError, *, retry_after: int) -> Problem:
    match error:
        case NoShare():
            wait = _whole_seconds(error, retry_after)
            return (too_many if error.own else busy)(str(error), retry_after=wait)
        case Transient():
            remedy = f" ({error.remedy})" if error.remedy else ""
            log.warning("request_refused", component=error.component, why=str(error), remedy=error.remedy)
            wait = _whole_seconds(error, retry_after)
            return unavailable(f"the {error.component} does not answer: {error}{remedy}", retry_after=wait)
        case Poison(reason="oversized"):
            return too_large(str(error))
        case Poison():
            return invalid_field("body", str(error))
    log.critical("request_broke_invariant", why=str(error))
    return internal()


def _whole_seconds(error: Transient, otherwise: int) -> int:
    """Return the seconds to wait, rounded up: a repeat must not come early."""
    return otherwise if error.retry_after is None else max(1, math.ceil(error.retry_after))


def internal() -> Problem:
    """Return the problem of an unexpected error. Only the log has the details."""
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the server failed; its log has the error")
