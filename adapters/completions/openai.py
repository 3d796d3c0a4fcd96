"""Chat completions from any OpenAI-compatible server, with structured outputs, fallback formats and one repair.

A request waits for a free place (the limit of concurrent calls). The request is sent in the best format that the server
accepts. The answer is decoded and passed to `request.parse`. After an unusable answer, the model is called once more
with the problem; a second unusable answer raises `Poison`. A request that a content filter refuses raises `Poison`
immediately. See docs/reference/models.md and docs/design/model-answers.md.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, TypeVar
from urllib.parse import urlsplit

import structlog
from pydantic import JsonValue

from ...schemas.errors import ContentFiltered, Poison, Transient
from ..openai_errors import MODEL, ServerFailed, shorten
from ..openai_server import ContentRefused, NoAnswer, OpenAIServer, RequestRefused, encode_json
from ..ports import Completion, CompletionRequest, Message, Places, Usage, UsageSink
from ..spend_meter import Meter, Unmetered
from ..unicode import replace_surrogates
from .chat_reply import ChatReply, answer_of, decode_reply
from .request_fields import RequestFields

A = TypeVar("A")
log = structlog.get_logger(__name__)

SETTING: Final = "MEMSTREAM_MODEL"
PATH: Final = "/chat/completions"
LIMIT_NAMES: Final = ("max_completion_tokens", "max_tokens")
"""Names of the field that limits the answer's length: OpenAI's current name, and the older name. Other servers know the
older name, and some of them ignore the current one without an error."""
OPENAI_HOSTS: Final = (".openai.com", ".azure.com")
ANSWER_LIMIT: Final = 16_384
"""Maximum tokens of an answer, with the tokens of its reasoning. A usual answer has a few hundred tokens. The limit
ends an answer that repeats itself, before the time limit of the call."""
LEAST_LIMIT: Final = 256
KEPT_LIMIT: Final = 2_048
"""Limits for a server with a short context. After a refusal of the limit it is halved, down to `LEAST_LIMIT` for this
request, and down to `KEPT_LIMIT` for later requests."""
FORMAT_STATUSES: Final = frozenset({403, 404, 500, 501})
"""Status codes of some servers for an unknown answer format."""
FORMAT_FAILURES: Final = 2
"""Number of consecutive failures, or of consecutive repairs, after which the next format is tried, while no format has
worked without a repair."""
REPAIRS_MAX: Final = 10
"""The same number of repairs once an answer in the format JSON_SCHEMA needed none. The server knows the schema then, so
two bad answers in a row are chance: at one in a hundred they come once in ten thousand calls."""
_STREAM_ONLY: Final = re.compile(r"\bstream", re.IGNORECASE)
"""Word in the error message of a server that accepts only streamed calls."""
STREAM: Final[Mapping[str, JsonValue]] = {"stream": True, "stream_options": {"include_usage": True}}


class AnswerFormat(IntEnum):
    """Formats of the answer, best first. If a server refuses a format, the next one is tried."""

    JSON_SCHEMA = 0
    JSON_MODE = 1
    PLAIN = 2


class OpenAICompletions:
    """`Completions` over the chat completions protocol.

    `timeout` is in seconds for one call, from the start of the request to the end of the response. It excludes the wait
    for a free place. `concurrency` is the maximum number of concurrent calls in this process; `places` assigns these
    calls to tenants. `meter` reserves the cost before each call, and receives the call's usage. `fields` are added to
    each request.
    """

    def __init__(
        self,
        *,
        model: str,
        sink: UsageSink,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 60.0,
        concurrency: int = 64,
        places: Places | None = None,
        meter: Meter | None = None,
        fields: RequestFields | None = None,
    ) -> None:
        self._model = model
        self._fields = fields or RequestFields()
        self._meter = meter or Unmetered()
        self._sink = sink
        self._server = OpenAIServer(
            model=model,
            component=MODEL,
            setting=SETTING,
            api_key=api_key,
            base_url=base_url,
            timeout=timeout,
            concurrency=concurrency,
            places=places,
            headers=self._fields.headers,
            query=self._fields.query,
        )
        own_limits = tuple(name for name in LIMIT_NAMES if name in self._fields.body)
        self._limit_names: tuple[str, ...] = own_limits or _limit_names(base_url)
        self._answer_limit = ANSWER_LIMIT
        self._streams = False
        self._formats: dict[str, AnswerFormat] = {}  # by task: a server may refuse one schema only
        self._format_failures: Counter[str] = Counter()
        self._repairs: Counter[str] = Counter()
        self._follow_schema: set[str] = set()
        """Tasks with an answer in the format JSON_SCHEMA that needed no repair."""

    @property
    def model(self) -> str:
        return self._model

    @property
    def costs_money(self) -> bool:
        return True

    @property
    def by_rules(self) -> bool:
        return False

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        """Answer a request. A time-out, a busy or failing server and wrong credentials raise `Transient`."""
        spent, problem = Usage(), ""
        answer_format: AnswerFormat | None = None
        for attempt in ("first", "repair"):
            try:
                if answer_format is None:
                    answer_format, reply = await self._ask_in_any_format(request)
                else:
                    reply = await self._ask(request, answer_format, problem)
            except RequestRefused as error:
                problem, answer_format = f"the server refused the request: {error}", AnswerFormat.PLAIN
            else:
                spent = _added(spent, reply.counted)
                try:
                    value = request.parse(answer_of(reply, request.json_schema))
                    self._count_repairs(request.task, answer_format, repaired=attempt == "repair")
                    return Completion(value=value, model=self._model, usage=spent)
                except ValueError as error:  # `UnusableReply`, or the parser's error about the outer shape
                    problem = shorten(str(error), limit=500)
            log.warning("model_answer_unusable", task=request.task, model=self._model, attempt=attempt, why=problem)
        raise Poison("refused_by_model", f"{self._model} gave no usable answer for {request.task}: {problem}")

    async def close(self) -> None:
        await self._server.close()

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of the fields that are added to each request."""
        return self._fields.names

    def answer_format(self, task: str) -> AnswerFormat | None:
        """Return the format that calls of the task begin with. None: no format has worked."""
        return self._formats.get(task)

    def _count_repairs(self, task: str, answer_format: AnswerFormat, *, repaired: bool) -> None:
        """Count consecutive repairs of answers in the format JSON_SCHEMA, because the server may ignore the schema.
        After `FORMAT_FAILURES` repairs, or `REPAIRS_MAX` if the task had an answer without a repair, change to JSON
        mode, which includes the schema in the first prompt."""
        if answer_format is not AnswerFormat.JSON_SCHEMA:
            return
        if not repaired:
            self._repairs.pop(task, None)
            self._follow_schema.add(task)
            return
        self._repairs[task] += 1
        if self._repairs[task] >= (REPAIRS_MAX if task in self._follow_schema else FORMAT_FAILURES):
            self._formats[task] = AnswerFormat.JSON_MODE

    async def _ask_in_any_format(self, request: CompletionRequest[A]) -> tuple[AnswerFormat, ChatReply]:
        """Ask in the first format that the server accepts, starting with the format that worked before."""
        refusal, failure = RequestRefused(""), None
        for answer_format in AnswerFormat:
            if answer_format < self._formats.get(request.task, AnswerFormat.JSON_SCHEMA):
                continue
            try:
                reply = await self._ask(request, answer_format)
            except RequestRefused as error:
                refusal = error
                continue
            except ServerFailed as error:
                failure = failure or error
                if not self._may_be_format_error(request.task, error):
                    raise failure from error
                continue
            # Keep the first format that works. A later refusal concerns one request, not the format.
            self._formats.setdefault(request.task, answer_format)
            self._format_failures.pop(request.task, None)
            return answer_format, reply
        self._format_failures.pop(request.task, None)
        raise failure or refusal

    def _may_be_format_error(self, task: str, error: ServerFailed) -> bool:
        """Count an error that the format may have caused. Return whether there were enough errors to try the next
        format."""
        if task in self._formats or error.status not in FORMAT_STATUSES:
            return False
        self._format_failures[task] += 1
        return self._format_failures[task] >= FORMAT_FAILURES

    async def _ask(self, request: CompletionRequest[A], answer_format: AnswerFormat, problem: str = "") -> ChatReply:
        """Make one call. Its usage is recorded even if its answer is unusable. Raise `ContentFiltered` when a content
        filter refuses the request."""
        wanted = _response_format(request, answer_format)
        body: dict[str, JsonValue] = {
            "model": self._model,
            "messages": _wire_messages(request, answer_format, problem),
            **({} if wanted is None else {"response_format": wanted}),
            **self._fields.body,
        }
        try:
            reply = await self._metered(request, body)
        except ContentRefused as refused:
            why = f"a content filter or policy of {self._model} refused the request for {request.task}: {refused}"
            raise ContentFiltered(why) from None  # a dead letter reports the deepest cause
        if reply is None:
            raise Transient(
                MODEL,
                f"the server of {self._model} did not answer with a chat completion",
                remedy="check OPENAI_BASE_URL (it usually ends with /v1)",
            )
        self._sink.record(tenant_id=request.tenant_id, task=request.task, model=self._model, usage=reply.counted)
        return reply

    async def _metered(self, request: CompletionRequest[A], body: Mapping[str, JsonValue]) -> ChatReply | None:
        """Reserve the maximum cost of the call, make the call, and settle its usage. Return None when the response is
        not a chat completion."""
        reserved = await self._meter.reserve(
            tenant_id=request.tenant_id,
            task=request.task,
            model=self._model,
            input_tokens=lambda: len(encode_json(body)),  # a token has at least one byte
        )
        used: Usage | None = None
        try:
            given = (request.max_output_tokens, reserved.max_output_tokens)
            limits = tuple(each for each in given if each is not None)
            reply = decode_reply(await self._bounded(request.tenant_id, body, limits))
            used = None if reply is None else reply.usage
            return reply
        except NoAnswer:
            raise
        except (Transient, RequestRefused):
            used = Usage()  # nothing to pay: no call, or an error response
            raise
        finally:
            reserved.settle(used)

    async def _bounded(self, tenant_id: str, body: Mapping[str, JsonValue], limits: tuple[int, ...]) -> bytes:
        """Post with a limit of the answer's length, in the field that this server accepts.

        `limits`: limits of this call. The request fields of the model are a further limit. Without any of them the
        limit is `ANSWER_LIMIT`.
        """
        for name in self._limit_names:
            own = self._fields.body.get(name)
            limit = min((own if isinstance(own, int) else self._answer_limit, *limits))
            while True:
                try:
                    return await self._posted(tenant_id, {**body, name: limit})
                except RequestRefused as refused:
                    if isinstance(refused, ContentRefused) or name in self._fields.body:
                        raise
                    if limit > LEAST_LIMIT and str(limit) in str(refused):
                        limit = max(LEAST_LIMIT, limit // 2)
                        self._answer_limit = min(self._answer_limit, max(KEPT_LIMIT, limit))
                        continue
                    if name not in str(refused):
                        raise
                    self._limit_names = tuple(each for each in self._limit_names if each != name)
                    break
        return await self._posted(tenant_id, body)

    async def _posted(self, tenant_id: str, body: Mapping[str, JsonValue]) -> bytes:
        """Post; use a stream when the server accepts only streams."""
        if not self._streams:
            try:
                return await self._server.post(PATH, body, tenant_id=tenant_id)
            except RequestRefused as refused:
                is_about_streams = _STREAM_ONLY.search(str(refused)) and "stream" not in self._fields.body
                if isinstance(refused, ContentRefused) or not is_about_streams:
                    raise
        answer = await self._server.post(PATH, {**body, **STREAM}, tenant_id=tenant_id)
        self._streams = True
        return answer


def _limit_names(base_url: str | None) -> tuple[str, ...]:
    """Return the names of the limit in the order in which the server is likely to know them."""
    host = urlsplit(base_url or "").hostname
    is_openai = host is None or f".{host}".endswith(OPENAI_HOSTS)
    return LIMIT_NAMES if is_openai else LIMIT_NAMES[::-1]


def _added(one: Usage, other: Usage) -> Usage:
    return Usage(
        calls=one.calls + other.calls,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
    )


def _response_format(request: CompletionRequest[A], answer_format: AnswerFormat) -> JsonValue:
    if answer_format is AnswerFormat.JSON_SCHEMA:
        return {
            "type": "json_schema",
            "json_schema": {"name": request.task, "strict": True, "schema": dict(request.json_schema)},
        }
    return {"type": "json_object"} if answer_format is AnswerFormat.JSON_MODE else None


def _wire_messages(request: CompletionRequest[A], answer_format: AnswerFormat, problem: str) -> list[JsonValue]:
    """Build the messages to send. Notes for the model go to the end of the first system message. Many chat templates
    reject a second system message or two consecutive messages of one role, and the last user message must stay
    unchanged."""
    notes: list[str] = []
    if problem or answer_format is not AnswerFormat.JSON_SCHEMA:  # some servers ignore a format without an error
        schema = json.dumps(request.json_schema, ensure_ascii=False)
        notes.append(
            f'Answer with one JSON object and nothing around it. It fits this JSON schema, named "{request.task}":\n'
            f"{schema}"
        )
    if problem:
        notes.append(f"Your previous answer to this could not be used: {problem}. Answer again, in full.")
    messages = list(request.messages)
    if notes:
        if not messages or messages[0].role != "system":
            messages.insert(0, Message(role="system", content=""))
        messages[0] = Message(role="system", content="\n\n".join([messages[0].content, *notes]).strip())
    return [{"role": message.role, "content": replace_surrogates(message.content)} for message in messages]
