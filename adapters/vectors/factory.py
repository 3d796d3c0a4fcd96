"""Factory for vector stores, by address: `http(s)://host:6333`, or `embedded:///folder`."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ...schemas.collections import Consistency, Sharding
from ...schemas.errors import Fatal, Transient
from ..folder_lock import holder_of
from ..ports import EmbedderIdentity
from .embedded.edge import EdgeEngine
from .embedded.edge_index import GraphBuilder
from .embedded.loopback import ENGINE_FOLDER, LoopbackServer, read_endpoint
from .engine import NO_ROOM, EngineRefused
from .errors import COMPONENT, ROOM_REMEDY
from .periods.period_store import PeriodStore
from .server.remote import Address
from .server.server_engine import remote_engine

REQUEST_SECONDS = 10
"""Time-out of one request to a remote Qdrant, in seconds. After a time-out, the outcome of the request is unknown, so
the error is `Transient`."""
ATTACH_SECONDS = 10.0
"""Seconds that a command tries to reach the holder of a folder."""
POLL_SECONDS = 0.1


def embedded_store_folder(url: str) -> Path | None:
    """Return the folder of an `embedded:///folder` address; None for any other address. `embedded:relative` and
    `embedded://relative` are relative to the working directory. Raise `Fatal` when the address has no
    folder."""
    parts = urlsplit(url)
    if parts.scheme != "embedded":
        return None
    path = unquote(parts.netloc + parts.path)
    if not path or path == "/":
        raise Fatal(f"{url!r} names no folder: write embedded:///absolute/folder")
    return Path(path)


async def open_store(
    url: str,
    *,
    embedder: EmbedderIdentity,
    api_key: str | None = None,
    ca: Path | None = None,
    holds_folder: bool = False,
    serve_loopback: bool = False,
    consistency: Consistency = "one",
    sharding: Sharding = "auto",
) -> PeriodStore:
    """Open a store. Its collections are not checked here, but by `ensure`.

    For `embedded:`, `holds_folder` means that this process holds the folder (adapters/folder_lock.py). Then the engine
    runs in this process. With `serve_loopback`, other processes can use the engine, and search graphs are built. If
    another process holds the folder, connect to the endpoint that the holder announces; raise `Transient` when this
    fails for 10 s.

    A remote Qdrant is not contacted here, but on the first request. `ca` is a file with certificates for verifying the
    certificate of this Qdrant. `consistency` is the number of replicas that a read asks. `sharding` is the sharding
    method of the collections; the embedded engine has no shards.
    """
    folder = embedded_store_folder(url)
    if folder is None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise Fatal(f"MEMSTREAM_QDRANT={url!r} is not an address: write http://host:6333 or embedded:///folder")
        engine_of_server = remote_engine(Address(url, api_key, ca), seconds=REQUEST_SECONDS)
        return PeriodStore(engine=engine_of_server, embedder=embedder, consistency=consistency, sharding=sharding)
    if sharding != "auto":
        raise Fatal(f"MEMSTREAM_QDRANT_SHARDING={sharding} needs a Qdrant server: the engine in a folder has no shards")
    if not holds_folder:
        return await _attach(folder, embedder)
    try:
        engine = EdgeEngine(folder=folder / ENGINE_FOLDER)
    except (EngineRefused, ValueError, OSError) as error:  # ValueError: a file has unexpected content
        if isinstance(error, EngineRefused) and error.status == NO_ROOM:
            raise Transient(COMPONENT, str(error), remedy=ROOM_REMEDY) from error
        raise Fatal(f"The embedded Qdrant in {folder} cannot be opened: {error}") from error
    if not serve_loopback:
        return PeriodStore(engine=engine, embedder=embedder)
    server, graphs = LoopbackServer(engine=engine, folder=folder), GraphBuilder(engine=engine)
    await server.start()
    graphs.start()
    return PeriodStore(engine=engine, embedder=embedder, on_close=(server.stop, graphs.stop))


def _announced(folder: Path) -> Address | None:
    """Return the current endpoint of the folder's holder. After a restart the port and the token are different."""
    endpoint = read_endpoint(folder)
    return None if endpoint is None else Address(endpoint.url, endpoint.token)


async def _attach(folder: Path, embedder: EmbedderIdentity) -> PeriodStore:
    deadline = time.monotonic() + ATTACH_SECONDS
    while True:
        endpoint = read_endpoint(folder)
        if endpoint is not None:
            engine = remote_engine(
                Address(endpoint.url, endpoint.token), seconds=REQUEST_SECONDS, look=lambda: _announced(folder)
            )
            store = PeriodStore(engine=engine, embedder=embedder)
            try:
                await store.ping()
            except Transient as error:
                await store.close()
                why = str(error)
            else:
                return store
        else:
            why = "the folder announces no endpoint"
        # Do not give up before a newer announcement is tried: this process may have been too busy to see it in time.
        if time.monotonic() >= deadline and read_endpoint(folder) == endpoint:
            raise Transient(
                COMPONENT,
                f"{folder} is held by {holder_of(folder)}, but its Qdrant engine was not reached for "
                f"{ATTACH_SECONDS:.0f} s: {why}",
                remedy="Wait until that process has started or ended, then try again; it may be too busy to answer.",
            )
        await asyncio.sleep(POLL_SECONDS)
