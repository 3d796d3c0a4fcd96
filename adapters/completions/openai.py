"""Chat completions from any OpenAI-compatible server: structured outputs, format fallbacks, one repair.

The way of a request: take a place (the limit of calls under way) → ask in the best format that the server takes →
decode the answer → `request.parse` → the typed answer; an unusable answer is asked for once more, then it is poison.
Source: contracts.md, "The model's side".
"""

from __future__ import annotations

import asyncio
import json
from enum import IntEnum
from typing import Final, TypeVar

import openai
import structlog
from openai.types.chat import ChatCompletionMessageParam
from openai.types.chat.completion_create_params import ResponseFormat

from ...schemas.errors import Poison, Transient
from ..openai_wire import api_key_or_placeholder, is_refusal, shortened, to_transient
from ..ports import Completion, CompletionRequest, Message, Usage, UsageSink
from ..well_formed import well_formed
from .answers import ChatReply, answer_of, decode_reply

A = TypeVar("A")
log = structlog.get_logger(__name__)

COMPONENT: Final = "model"
SETTING: Final = "MEMSTREAM_MODEL"


class AnswerFormat(IntEnum):
    """How the answer is asked for, best first; a server that refuses one gets the next."""

    JSON_SCHEMA = 0
    JSON_MODE = 1
    PLAIN = 2


class OpenAICompletions:
    """`Completions` over the chat completions protocol.

    `timeout` is in seconds, for one call from first byte to last; waiting for a place does not count. `concurrency`
    is the limit of calls under way in this process.
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
    ) -> None:
        self._model = model
        self._sink = sink
        self._timeout = timeout
        self._places = asyncio.Semaphore(concurrency)
        self._client = openai.AsyncOpenAI(
            api_key=api_key_or_placeholder(api_key), base_url=base_url, timeout=None, max_retries=0
        )
        self._formats: dict[str, AnswerFormat] = {}  # by task: a server may refuse one schema and take another

    @property
    def model(self) -> str:
        return self._model

    @property
    def costs_money(self) -> bool:
        return True

    async def complete(self, request: CompletionRequest[A]) -> Completion[A]:
        """See the port. A time-out, a busy or failing server and wrong credentials are `Transient`."""
        spent, problem = Usage(), ""
        answer_format: AnswerFormat | None = None
        for attempt in ("first", "repair"):
            try:
                if answer_format is None:
                    answer_format, reply = await self._ask_in_any_format(request)
                else:
                    reply = await self._ask(request, answer_format, problem)
            except _Refused as error:
                problem, answer_format = str(error), AnswerFormat.PLAIN
            else:
                spent = _added(spent, reply.counted)
                try:
                    return Completion(value=request.parse(answer_of(reply)), model=self._model, usage=spent)
                except ValueError as error:  # `Unusable`, or what the parser says of the outer shape
                    problem = shortened(str(error), limit=500)
            log.warning("model_answer_unusable", task=request.task, model=self._model, attempt=attempt)
        raise Poison("refused_by_model", f"{self._model} gave no usable answer for {request.task}: {problem}")

    async def close(self) -> None:
        await self._client.close()

    async def _ask_in_any_format(self, request: CompletionRequest[A]) -> tuple[AnswerFormat, ChatReply]:
        """The first format that the server takes, from the one that worked before on."""
        refusal = _Refused("")
        for answer_format in AnswerFormat:
            if answer_format < self._formats.get(request.task, AnswerFormat.JSON_SCHEMA):
                continue
            try:
                reply = await self._ask(request, answer_format)
            except _Refused as error:
                refusal = error
                continue
            # What worked first stays: a refusal after that is about one request, not about the format.
            self._formats.setdefault(request.task, answer_format)
            return answer_format, reply
        raise refusal

    async def _ask(self, request: CompletionRequest[A], answer_format: AnswerFormat, problem: str = "") -> ChatReply:
        """One call; its usage is recorded whatever its answer is worth."""
        async with self._places:
            try:
                # For the whole call: the client's own limits are per read, which a trickle of bytes escapes.
                async with asyncio.timeout(self._timeout):
                    raw = await self._client.chat.completions.with_raw_response.create(
                        model=self._model,
                        messages=_wire_messages(request, answer_format, problem),
                        response_format=_response_format(request, answer_format),
                    )
                    body = raw.content
            except TimeoutError as error:
                raise Transient(
                    COMPONENT,
                    f"{self._model} did not answer within {self._timeout:g} s",
                    remedy="raise MEMSTREAM_MODEL_TIMEOUT if the model is just slow",
                ) from error
            except openai.APIError as error:
                if is_refusal(error):
                    raise _Refused(f"the server refused the request: {shortened(error.message)}") from error
                raise to_transient(error, component=COMPONENT, model=self._model, setting=SETTING) from error
        reply = decode_reply(body)
        if reply is None:
            raise Transient(
                COMPONENT,
                f"what answers for {self._model} speaks no chat completions",
                remedy="check OPENAI_BASE_URL (it usually ends with /v1)",
            )
        self._sink.record(tenant_id=request.tenant_id, task=request.task, model=self._model, usage=reply.counted)
        return reply


class _Refused(Exception):
    """The server will not take this request in this format (400, 413, 422)."""


def _added(one: Usage, other: Usage) -> Usage:
    return Usage(
        calls=one.calls + other.calls,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
    )


def _response_format(request: CompletionRequest[A], answer_format: AnswerFormat) -> ResponseFormat | openai.Omit:
    if answer_format is AnswerFormat.JSON_SCHEMA:
        return {
            "type": "json_schema",
            "json_schema": {"name": request.task, "strict": True, "schema": dict(request.json_schema)},
        }
    return {"type": "json_object"} if answer_format is AnswerFormat.JSON_MODE else openai.omit


def _wire_messages(
    request: CompletionRequest[A], answer_format: AnswerFormat, problem: str
) -> list[ChatCompletionMessageParam]:
    """The messages as sent. What we add goes to the end of the first system message: many chat templates refuse a
    second one, or two messages of one role in a row, and the last user message must stay as it is."""
    notes: list[str] = []
    if answer_format is not AnswerFormat.JSON_SCHEMA:
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
    return [_wire_message(message) for message in messages]


def _wire_message(message: Message) -> ChatCompletionMessageParam:
    content = well_formed(message.content)
    match message.role:
        case "system":
            return {"role": "system", "content": content}
        case "assistant":
            return {"role": "assistant", "content": content}
        case "user":
            return {"role": "user", "content": content}
