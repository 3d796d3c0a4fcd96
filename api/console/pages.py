"""Pages of the console: templates, the page of an error, the way to the sign-in, and the query of a page."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_origin
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import BaseModel, Field, ValidationError
from starlette.responses import RedirectResponse, Response

from ...memory.facts.reasons import decided, sentence
from ...memory.secrets.findings import PLACEHOLDER
from ...schemas.cloudevents import rfc3339
from ..credentials import Caller, bearer_token
from ..problems import URN, Problem, ProblemDetails, audit_denied, field_errors, invalid
from .shown_text import shown
from .sign_in import PATH, FormGuard, forget, return_path

FOLDER: Final = Path(__file__).parent
HEADINGS: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.FORBIDDEN: "You may not do this",
    HTTPStatus.NOT_FOUND: "Memory does not have this",
    HTTPStatus.METHOD_NOT_ALLOWED: "This page does not accept this request",
    HTTPStatus.CONFLICT: "Memory refused the change",
    HTTPStatus.GONE: "The log no longer has this",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The text is too long",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "This is not a form of the console",
    HTTPStatus.UNPROCESSABLE_ENTITY: "A field has a wrong value",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests run",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "The address or a cookie is too long",
    HTTPStatus.SERVICE_UNAVAILABLE: "A part of memory does not answer",
}
"""Headings of error pages. Another status has the heading "The server failed"."""
BUSY: Final = "The server has too much to do"
NOTICE: Final = "notice"
Notice = Literal["applied", "accepted", "put_back", "was_put_back"]
"""Result of a form. `accepted`: the change is in the log, and no stage has applied it in time."""
M = TypeVar("M", bound=BaseModel)
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Noticed(BaseModel):
    """Query of a page to which a form may lead."""

    notice: Annotated[Notice | None, Field(description="Result of the form that led here.")] = None


class ConsolePages:
    """Renderer of the pages. `signs_in` is True when the server has tokens."""

    def __init__(self, *, signs_in: bool) -> None:
        self.forms = FormGuard()
        self._signs_in = signs_in
        self._templates = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {"shown": shown, "time": time_of, "number": number}
        self._templates.filters |= {"reason": sentence, "decided": decided, "has_mask": has_mask}

    def page(
        self,
        request: Request,
        template: str,
        *,
        caller: Caller | None,
        status: HTTPStatus = HTTPStatus.OK,
        **values: object,
    ) -> Response:
        """Render a page. `caller` None: nobody is signed in. The value `live` is the query of the page's stream."""
        root, here = console_root(request), _here(request, but=NOTICE)

        def link(page: str, **query: object) -> str:
            return address(root, page, query)

        text = self._templates.get_template(template).render(
            {"live": None} | values,
            link=link,
            here=here,
            reload=root.removesuffix(PATH) + here,
            caller=caller,
            can=frozenset() if caller is None else caller.scopes,
            signed_in=self._signs_in and caller is not None,
            csrf=self.forms.token(request),
        )
        body = text.encode("utf-8", "backslashreplace")  # an unpaired surrogate has no UTF-8
        return Response(body, status, media_type="text/html; charset=utf-8")

    def route_class(self) -> type[APIRoute]:
        """Return the class of the routes of pages: without a valid token, the answer leads to the sign-in."""
        pages = self

        class ConsoleRoute(APIRoute):
            def get_route_handler(self) -> Handler:
                handler = super().get_route_handler()

                async def answer(request: Request) -> Response:
                    try:
                        return await handler(request)
                    except Problem as problem:
                        if problem.status is not HTTPStatus.UNAUTHORIZED:
                            raise
                        return pages.to_sign_in(request, problem)

                return answer

        return ConsoleRoute

    def error(self, request: Request, problem: ProblemDetails, *, retry_after: str | None) -> Response:
        """Render the page of an error. `retry_after`: the seconds in the header of the answer."""
        status = HTTPStatus(problem.status)
        is_read = request.method == "GET"
        return self.page(
            request,
            "error.html",
            caller=getattr(request.state, "console_caller", None),
            status=status,
            problem=problem,
            heading=BUSY if problem.type == f"{URN}busy" else HEADINGS.get(status, "The server failed"),
            retry_after=retry_after,
            is_read=is_read,
            again=is_read and (retry_after is not None or status is HTTPStatus.INTERNAL_SERVER_ERROR),
        )

    def done(self, request: Request, back: str | None, notice: Notice) -> Response:
        """Lead back to the page of a form, which then shows the result, so that a reload sends nothing again."""
        path = return_path(back)
        mark = urlencode({NOTICE: notice})
        root = console_root(request).removesuffix(PATH)
        return RedirectResponse(f"{root}{path}{'&' if '?' in path else '?'}{mark}", HTTPStatus.SEE_OTHER)

    def to_sign_in(self, request: Request, problem: Problem) -> Response:
        """Lead to the sign-in, and back to the page afterwards. The cookie of a token that is not valid is removed."""
        ended = bearer_token(request.headers) is not None
        if ended:
            audit_denied(problem, request)
        query = {"next": _here(request) if request.method == "GET" else PATH} | ({"ended": "1"} if ended else {})
        response = RedirectResponse(address(console_root(request), "sign-in", query), HTTPStatus.SEE_OTHER)
        if ended:
            forget(response, request)
        return response


def _here(request: Request, *, but: str = "") -> str:
    """Return path and query of a page without the prefix of the server, and without the parameter `but`."""
    path = request.url.path.removeprefix(str(request.scope.get("root_path", "")))
    query = "&".join(each for each in request.url.query.split("&") if each and each.partition("=")[0] != but)
    return f"{path}?{query}" if query else path


def console_root(request: Request) -> str:
    """Return the path of the console with the prefix of the server."""
    return quote(str(request.scope.get("root_path", ""))) + PATH


def address(root: str, page: str, query: Mapping[str, object]) -> str:
    """Return the address of a page. Values that are None or empty are left out."""
    given = [(name, each) for name, value in query.items() for each in _values(value)]
    path = f"{root}/{page}" if page else root
    return f"{path}?{urlencode(given, errors='replace')}" if given else path


def _values(value: object) -> list[str]:
    if isinstance(value, tuple | list):
        return [text for each in value for text in _values(each)]
    if value is None or value == "":
        return []
    return [rfc3339(value) if isinstance(value, datetime) else str(value)]


def asked(model: type[M], request: Request) -> M:
    """Read the query of a page as the model of the REST API. Empty fields of a form are left out. Raises Problem."""
    given: dict[str, Any] = {}
    for name in request.query_params:
        values = [value for value in request.query_params.getlist(name) if value.strip()]
        field = model.model_fields.get(name)
        several = field is not None and get_origin(field.annotation) is tuple
        if values:
            given[name] = values if several or len(values) > 1 else values[0]
    return checked_model(model, given)


def checked_model(model: type[M], given: Mapping[str, Any]) -> M:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise invalid(field_errors(error)) from None


def time_of(moment: datetime | None) -> Markup:
    """Return a time as an element: the date and the seconds in UTC. The script shows the reader's zone instead."""
    if moment is None:
        return Markup('<span class="none">–</span>')
    utc = moment.astimezone(UTC)
    return Markup('<time datetime="{}">{:%Y-%m-%d %H:%M:%S} UTC</time>').format(rfc3339(utc), utc)


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def has_mask(text: str) -> bool:
    """Return whether a message has the placeholder of a secret."""
    return PLACEHOLDER.search(text) is not None
