"""Embedder over any OpenAI-compatible server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, Field, JsonValue, ValidationError

from ...schemas.errors import ContentFiltered, Fatal, Poison, Transient
from ..openai_server import ContentRefused, OpenAIServer, RequestRefused
from ..ports import EmbedderIdentity, Usage, UsageSink
from ..unicode import replace_surrogates

COMPONENT: Final = "embedder"
SETTING: Final = "MEMSTREAM_EMBEDDER"
TASK: Final = "embedding"

BATCH: Final = 32
"""Maximum number of texts in one call: the default limit of Hugging Face's text-embeddings-inference. Other common
servers have a higher limit."""
MAX_TEXT: Final = 8_000
"""Maximum code points of a text that are embedded; the rest is cut off. Most models accept 8 192 tokens."""
SHORT_TEXT: Final = 2_000
"""Code points of a shortened text, for the second attempt after a server refuses a call. Even at four tokens per code
point, a shortened text fits into 8 192 tokens."""
_EMPTY: Final = "-"
"""Replacement for a text without a visible character, because servers refuse an empty text."""


class _Vector(BaseModel):
    index: int = Field(ge=0)
    embedding: list[float]


class _Tokens(BaseModel):
    prompt_tokens: int = Field(default=0, ge=0)


class _Reply(BaseModel):
    data: list[_Vector]
    usage: _Tokens | None = None


class OpenAIEmbedder:
    """`Embedder` over the embeddings protocol. `timeout` is in seconds for one call; `concurrency` is the maximum
    number of concurrent calls.

    The first answer sets the dimension. A later answer with another dimension raises `Fatal`. If no text was embedded
    before, `identity` makes one blocking call to learn the dimension. This happens at start-up, because a store needs
    the dimension to open.
    """

    def __init__(
        self,
        *,
        model: str,
        sink: UsageSink,
        api_key: str | None = None,
        base_url: str | None = None,
        timeout: float = 60.0,
        concurrency: int = 16,
    ) -> None:
        self._model = model
        self._sink = sink
        self._server = OpenAIServer(
            model=model,
            component=COMPONENT,
            setting=SETTING,
            api_key=api_key,
            base_url=base_url,
            timeout=timeout,
            concurrency=concurrency,
        )
        self._dimension: int | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        if self._dimension is None:
            self._dimension = self._probe()
        return EmbedderIdentity(name=f"openai:{self._model}", dimension=self._dimension)

    async def embed(self, texts: Sequence[str], *, tenant_id: str) -> list[list[float]]:
        cut = [replace_surrogates(text)[:MAX_TEXT] for text in texts]
        vectors: list[list[float]] = []
        for start in range(0, len(cut), BATCH):
            batch = cut[start : start + BATCH]
            try:
                vectors += await self._call(batch, tenant_id)
            except RequestRefused as refused:  # a text is too long or rejected: try each text alone, shortened
                if len(batch) == 1 and isinstance(refused, ContentRefused):
                    raise self._will_not_embed(refused) from None
                for text in batch:
                    try:
                        vectors += await self._call([text[:SHORT_TEXT]], tenant_id)
                    except RequestRefused as error:
                        raise self._will_not_embed(error) from None
        return vectors

    def _will_not_embed(self, refused: RequestRefused) -> Poison:
        why = f"{self._model} refuses to embed this text: {refused}"
        return ContentFiltered(why) if isinstance(refused, ContentRefused) else Poison("refused_by_model", why)

    async def close(self) -> None:
        await self._server.close()

    async def _call(self, texts: Sequence[str], tenant_id: str) -> list[list[float]]:
        body = await self._server.post("/embeddings", self._request_body(_visible(texts)), tenant_id=tenant_id)
        reply = self._decode(body, len(texts))
        used = Usage(calls=1, input_tokens=reply.usage.prompt_tokens if reply.usage else 0)
        self._sink.record(tenant_id=tenant_id, task=TASK, model=self._model, usage=used)
        vectors = [_unit(item.embedding, self._model) for item in sorted(reply.data, key=lambda item: item.index)]
        if self._dimension is None:
            self._dimension = len(vectors[0])
        if any(len(vector) != self._dimension for vector in vectors):
            raise Fatal(
                f"{self._model} returned vectors of another length than before ({self._dimension}); "
                f"check {SETTING} and OPENAI_BASE_URL"
            )
        return vectors

    def _probe(self) -> int:
        try:
            body = self._server.post_blocking("/embeddings", self._request_body(["dimension"]))
        except RequestRefused as error:
            raise Transient(
                COMPONENT,
                f"the server of {self._model} refuses to embed a test word: {error}",
                remedy=f"check {SETTING} and OPENAI_BASE_URL: is {self._model} a model for embeddings?",
            ) from error
        return len(self._decode(body, 1).data[0].embedding)

    def _request_body(self, texts: Sequence[str]) -> dict[str, JsonValue]:
        return {"model": self._model, "input": list(texts), "encoding_format": "float"}

    def _decode(self, body: bytes, expected: int) -> _Reply:
        try:
            reply = _Reply.model_validate_json(body)
        except ValidationError as error:
            raise Transient(
                COMPONENT,
                f"the server of {self._model} did not answer with embeddings",
                remedy=f"check OPENAI_BASE_URL (it usually ends with /v1) and {SETTING}",
            ) from error
        if sorted(item.index for item in reply.data) != list(range(expected)):
            raise Transient(COMPONENT, f"{self._model} returned {len(reply.data)} vectors for {expected} texts")
        return reply


def _visible(texts: Sequence[str]) -> list[str]:
    return [text if text.strip() else _EMPTY for text in texts]


def _unit(vector: list[float], model: str) -> list[float]:
    length = math.sqrt(sum(x * x for x in vector))
    if not math.isfinite(length) or length == 0.0:
        raise Transient(COMPONENT, f"{model} returned a zero or non-finite vector")
    return [x / length for x in vector]
