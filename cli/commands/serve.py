"""`memstream serve`: serve memory over HTTP until SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import sys
from dataclasses import replace

import click
import structlog

from ...api.app import Publication
from ...api.credentials import Credentials
from ...api.limits import Limits
from ...memory.policies import MemoryPolicy
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import logs
from ..process.garbage_collection import tune_garbage_collection
from ..process.signals import until_stopped
from ..wiring.http_connections import connections_that_fit
from ..wiring.server import HttpServer, listening, read_credentials, server_parts, url_of
from ..wiring.settings import Settings

log = structlog.get_logger(__name__)

ANY_ORIGIN = "*"
OWN_SEGMENTS = frozenset({"v1", "mcp", "docs", "openapi.json", ".well-known", "livez", "readyz", "metrics", "console"})
"""First segments of this server's own paths. A prefix must not begin with one of them."""


def _root_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the prefix with a leading slash and without a trailing slash."""
    path = value.strip("/")
    segments = path.split("/")
    if path and not all(re.fullmatch(r"[\w.~-]+", each, re.ASCII) for each in segments):
        raise click.BadParameter("is a path of letters, digits and .~_- between slashes, such as /memory")
    if segments[0] in OWN_SEGMENTS:
        raise click.BadParameter(f"/{segments[0]} is a path of this server; choose another prefix")
    return f"/{path}" if path else ""


@click.command()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. An address other than loopback needs MEMSTREAM_TOKENS or MEMSTREAM_OIDC_ISSUER.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--with-stages",
    is_flag=True,
    help="Run all stages in this process. [default: only if it holds the embedded folder]",
)
@click.option(
    "--root-path",
    metavar="PATH",
    default="",
    callback=_root_path,
    help="Prefix of every path behind a proxy, such as /memory. The proxy may strip the prefix or keep it.",
)
@pass_context
def serve(context: CommandContext, host: str, port: int, with_stages: bool, root_path: str) -> None:
    """Serve memory over HTTP: accept turns, answer recall, stream changes of facts as server-sent events.

    docs/reference/http.md describes the interface; the server shows it at /docs. /readyz and /metrics report the
    state. On SIGTERM the server finishes running requests, ends streams and exits 0. Logs go to stdout; the log line
    `serving` has the address.
    """
    logs.configure(stream=sys.stdout, level=logging.INFO)
    settings, policy = context.settings, context.policy
    try:
        logs.open_audit(settings.audit_log or sys.stdout)
    except OSError as error:
        raise usage(f"MEMSTREAM_AUDIT_LOG={settings.audit_log}: {error.strerror or error}") from error
    credentials = read_credentials(settings, host)
    if credentials.open and ANY_ORIGIN in settings.origins:
        raise usage(
            "MEMSTREAM_CORS_ORIGINS=*: without tokens any web page could read this memory; list the allowed origins"
        )
    publication = Publication(root_path, settings.origins)
    with listening(host, port) as sockets:
        raise SystemExit(run(_serve(settings, policy, credentials, publication, sockets, with_stages=with_stages)))


async def _serve(
    settings: Settings,
    policy: MemoryPolicy,
    credentials: Credentials,
    publication: Publication,
    sockets: list[socket.socket],
    *,
    with_stages: bool,
) -> int:
    async def serving(running: asyncio.Event, stopping: asyncio.Event) -> int:
        async with server_parts(settings, policy, with_stages=with_stages) as services:
            running.set()
            log.info(
                "serving",
                url=url_of(sockets),
                stages_here=services.stages is not None,
                issuer=settings.oidc_issuer,
                tokens=None if credentials.entries is None else len(credentials.entries),
            )
            limits = Limits()
            server = HttpServer(
                parts=services,
                policy=policy,
                credentials=credentials,
                limits=replace(
                    limits,
                    connections=connections_that_fit(limits.connections),
                    idle_seconds=settings.keep_alive_timeout,
                ),
                publication=publication,
            )
            tune_garbage_collection()
            return await server.run(sockets, stopping=stopping)

    return await until_stopped(serving, name="serve")
