"""A Qdrant server: points over aiohttp, everything else by qdrant-client.

The client's own calls cost 2.7 ms of CPU alone and 4 to 10 with 64 in flight (httpx looks through its whole pool at
each request, pydantic through each record); these cost a tenth (ADR 0009). Same REST interface, same models, same
exceptions, so the store and the loopback server do not know the difference.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
import structlog
from pydantic import BaseModel
from pydantic_core import from_json, to_json
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_client.http.models import QueryResponse

T = TypeVar("T")
log = structlog.get_logger(__name__)

CONNECTIONS: Final = 64
KEEP_ALIVE: Final = 4.0
"""Seconds that an idle connection is kept: the server closes it after 5."""
PORT: Final = 6333
NOT_OURS: Final = frozenset({401, 403})
"""What another process says that was given the port of the one before."""
RECORD: Final = frozenset({"id"})
SCORED: Final = frozenset({"id", "score"})
_DONE: Final = models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a Qdrant is reached, and by which key."""

    url: str
    api_key: str | None = None


class RemoteEngine:
    """The methods of `AsyncQdrantClient` that the store uses. Connects with the first call."""

    def __init__(self, *, address: Address, timeout: float, look: Callable[[], Address | None] | None = None) -> None:
        """`timeout` in seconds, for one request from first byte to last.

        `look`, where the server may move, is asked when it does not answer or refuses the key: from then on, what it
        names is used. The request that found out fails all the same, and its caller tries again.
        """
        self._timeout = timeout
        self._look = look or (lambda: None)
        self._session: aiohttp.ClientSession | None = None
        self._left: list[AsyncQdrantClient] = []
        self._use(address)

    def _use(self, address: Address) -> None:
        self._address = address
        parts = urlsplit(address.url)
        own_port = parts.port is not None or parts.scheme == "https"
        netloc = parts.netloc if own_port else f"{parts.netloc}:{PORT}"
        self._base = f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"
        key = address.api_key
        self._headers = {"Content-Type": "application/json", **({"api-key": key} if key else {})}
        self._proxy = _proxy(parts.scheme, parts.hostname or "")
        on_this_machine = parts.hostname in ("localhost", "127.0.0.1", "::1")
        self._client = AsyncQdrantClient(
            url=address.url,
            port=None if parts.port is None and parts.scheme == "https" else PORT,
            # As a header on this machine: as `api_key` the client warns that http is not safe, which here it is.
            api_key=None if on_this_machine else key,
            headers={"api-key": key} if on_this_machine and key else None,
            timeout=int(self._timeout),
            check_compatibility=False,
            # Kept alive: its own default closes connections on this machine. Few: points do not go this way.
            limits=httpx.Limits(max_connections=4, max_keepalive_connections=4),
        )

    def _look_again(self) -> None:
        """After a request that went wrong: whoever tries again asks where the server is now."""
        found = self._look()
        if found is not None and found != self._address:
            log.info("qdrant_moved", url=found.url)
            self._left.append(self._client)
            self._use(found)

    # -------------------------------------------------------------------------------------------- collections
    async def info(self) -> models.VersionInfo:
        return await self._managed(lambda client: client.info())

    async def get_aliases(self) -> models.CollectionsAliasesResponse:
        return await self._managed(lambda client: client.get_aliases())

    async def update_collection_aliases(
        self, change_aliases_operations: Sequence[models.CreateAliasOperation | models.DeleteAliasOperation]
    ) -> bool:
        return await self._managed(lambda client: client.update_collection_aliases(change_aliases_operations))

    async def collection_exists(self, collection_name: str) -> bool:
        return await self._managed(lambda client: client.collection_exists(collection_name))

    async def get_collection(self, collection_name: str) -> models.CollectionInfo:
        return await self._managed(lambda client: client.get_collection(collection_name))

    async def create_collection(
        self,
        collection_name: str,
        vectors_config: Mapping[str, models.VectorParams],
        sparse_vectors_config: Mapping[str, models.SparseVectorParams] | None = None,
        *,
        hnsw_config: models.HnswConfigDiff | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> bool:
        return await self._managed(
            lambda client: client.create_collection(
                collection_name, vectors_config, sparse_vectors_config, hnsw_config=hnsw_config, metadata=metadata
            )
        )

    async def delete_collection(self, collection_name: str) -> bool:
        return await self._managed(lambda client: client.delete_collection(collection_name))

    async def create_payload_index(
        self, collection_name: str, field_name: str, field_schema: Any = None, *, wait: bool = True
    ) -> models.UpdateResult:
        return await self._managed(
            lambda client: client.create_payload_index(collection_name, field_name, field_schema, wait=wait)
        )

    # -------------------------------------------------------------------------------------------- points
    async def upsert(
        self,
        collection_name: str,
        points: list[models.PointStruct],
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
        update_filter: models.Filter | None = None,
        update_mode: models.UpdateMode | None = None,
    ) -> models.UpdateResult:
        body: dict[str, Any] = {"points": [_point(each) for each in points]}
        if update_filter is not None:
            body["update_filter"] = _plain(update_filter)
        if update_mode is not None:
            body["update_mode"] = update_mode.value
        await self._ask("PUT", f"{_points(collection_name)}{_write(wait, ordering)}", body)
        return _DONE

    async def set_payload(
        self,
        collection_name: str,
        payload: dict[str, Any],
        points: models.Filter,
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
    ) -> models.UpdateResult:
        path = f"{_points(collection_name)}/payload{_write(wait, ordering)}"
        await self._ask("POST", path, {"payload": payload, "filter": _plain(points)})
        return _DONE

    async def delete(
        self,
        collection_name: str,
        points_selector: models.Filter,
        *,
        wait: bool = True,
        ordering: models.WriteOrdering | None = None,
    ) -> models.UpdateResult:
        path = f"{_points(collection_name)}/delete{_write(wait, ordering)}"
        await self._ask("POST", path, {"filter": _plain(points_selector)})
        return _DONE

    async def scroll(
        self,
        collection_name: str,
        scroll_filter: models.Filter | None = None,
        limit: int = 10,
        order_by: models.OrderBy | None = None,
        offset: Any = None,
        with_payload: bool = True,
        with_vectors: Any = False,
        *,
        consistency: models.ReadConsistencyType | None = None,
    ) -> tuple[list[models.Record], Any]:
        body: dict[str, Any] = {"limit": limit, "with_payload": with_payload, "with_vector": with_vectors}
        if scroll_filter is not None:
            body["filter"] = _plain(scroll_filter)
        if order_by is not None:
            body["order_by"] = _plain(order_by)
        if offset is not None:
            body["offset"] = offset
        query = "" if consistency is None else f"?consistency={consistency.value}"
        page = await self._ask("POST", f"{_points(collection_name)}/scroll{query}", body)
        return [_record(each) for each in _listed(page, RECORD)], page.get("next_page_offset")

    async def query_points(
        self,
        collection_name: str,
        query: Any = None,
        using: str | None = None,
        *,
        query_filter: models.Filter | None = None,
        limit: int = 10,
        with_payload: bool = True,
    ) -> QueryResponse:
        body: dict[str, Any] = {
            "query": {"nearest": _plain(query)},
            "using": using,
            "limit": limit,
            "with_payload": with_payload,
        }
        if query_filter is not None:
            body["filter"] = _plain(query_filter)
        found = await self._ask("POST", f"{_points(collection_name)}/query", body)
        return QueryResponse.model_construct(points=[_scored(each) for each in _listed(found, SCORED)])

    async def count(
        self, collection_name: str, count_filter: models.Filter | None = None, exact: bool = True
    ) -> models.CountResult:
        body: dict[str, Any] = {"exact": exact}
        if count_filter is not None:
            body["filter"] = _plain(count_filter)
        counted = await self._ask("POST", f"{_points(collection_name)}/count", body)
        if not isinstance(counted.get("count"), int):
            raise _not_qdrants("no count in the answer")
        return models.CountResult(count=counted["count"])

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        for client in (self._client, *self._left):
            await client.close()

    # -------------------------------------------------------------------------------------------- within
    async def _managed(self, call: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        try:
            return await call(self._client)
        except ResponseHandlingException:
            self._look_again()
            raise
        except UnexpectedResponse as error:
            if error.status_code in NOT_OURS:
                self._look_again()
            raise

    async def _ask(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The `result` of the answer. Raises what qdrant-client raises."""
        try:
            async with self._open().request(
                method, f"{self._base}{path}", data=to_json(body), headers=self._headers, proxy=self._proxy
            ) as response:
                content = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            self._look_again()
            raise ResponseHandlingException(error) from error
        if response.status in NOT_OURS:
            self._look_again()
        if response.status == 429 and (seconds := response.headers.get("retry-after")):
            raise ResourceExhaustedResponse(content[:200].decode("utf-8", "replace"), seconds)  # type: ignore[arg-type]
        if response.status not in (200, 201, 202):
            raise UnexpectedResponse(
                response.status, response.reason or "", content, httpx.Headers(list(response.headers.items()))
            )
        try:
            result = from_json(content)["result"]
        except (ValueError, KeyError, TypeError) as error:
            raise _not_qdrants(content[:200].decode("utf-8", "replace")) from error
        if not isinstance(result, dict):
            raise _not_qdrants(content[:200].decode("utf-8", "replace"))
        return result

    def _open(self) -> aiohttp.ClientSession:
        """Made with the first call: it belongs to the running loop."""
        if self._session is None:
            secure = self._base.startswith("https:")
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=CONNECTIONS,
                    keepalive_timeout=KEEP_ALIVE,
                    ssl=httpx.create_ssl_context() if secure else True,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=self._timeout),
            )
        return self._session


def _not_qdrants(said: str) -> ResponseHandlingException:
    return ResponseHandlingException(ValueError(f"the answer is not Qdrant's: {said}"))


def _proxy(scheme: str, host: str) -> str | None:
    """From the environment, looked up once: aiohttp's own look-up takes a thread for each request."""
    return None if proxy_bypass(host) else getproxies().get(scheme)


# ------------------------------------------------------------------------------------------------ forms
def _points(collection: str) -> str:
    return f"/collections/{quote(collection, safe='')}/points"


def _write(wait: bool, ordering: models.WriteOrdering | None) -> str:
    strong = "" if ordering is None else f"&ordering={ordering.value}"
    return f"?wait={str(wait).lower()}{strong}"


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return value


def _point(point: models.PointStruct) -> dict[str, Any]:
    """By hand: a vector has a thousand floats, and the payload's nulls stay."""
    vector = point.vector
    named = {name: _plain(each) for name, each in vector.items()} if isinstance(vector, dict) else vector
    return {"id": point.id, "vector": named, "payload": point.payload}


def _listed(result: Mapping[str, Any], wanted: frozenset[str]) -> list[dict[str, Any]]:
    points = result.get("points")
    if not isinstance(points, list) or not all(isinstance(each, dict) and wanted <= each.keys() for each in points):
        raise _not_qdrants("no points in the answer")
    return points


def _record(found: Mapping[str, Any]) -> models.Record:
    """Not validated: it is Qdrant's, and its payload is looked at by who asked."""
    return models.Record.model_construct(
        id=found["id"],
        payload=found.get("payload"),
        vector=found.get("vector"),
        order_value=found.get("order_value"),
    )


def _scored(found: Mapping[str, Any]) -> models.ScoredPoint:
    return models.ScoredPoint.model_construct(
        id=found["id"],
        version=found.get("version", 0),
        score=found["score"],
        payload=found.get("payload"),
        vector=found.get("vector"),
    )
