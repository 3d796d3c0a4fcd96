"""`memstream serve`: serve memory over HTTP until SIGTERM."""

from __future__ import annotations

import logging
import re
import sys
from dataclasses import replace

import click
import structlog

from ...api.app import Publication
from ...api.limits import Limits
from ..context import CommandContext, pass_context, run
from ..errors import usage
from ..output import logs
from ..wiring.server import ServerParts, ServerPlan, listening, read_credentials, url_of

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
    limits = replace(Limits(), idle_seconds=settings.keep_alive_timeout)

    def began(parts: ServerParts) -> None:
        log.info(
            "serving",
            url=url_of(sockets),
            stages_here=parts.stages is not None,
            issuer=settings.oidc_issuer,
            tokens=None if credentials.entries is None else len(credentials.entries),
        )

    with listening(host, port) as sockets:
        plan = ServerPlan(settings, policy, credentials, limits, publication, with_stages=with_stages)
        raise SystemExit(run(plan.run(sockets, began=began, name="serve")))
