"""`memstream health`: ask the worker or server of this machine whether it is ready.

Containers run this command every few seconds, so it imports as little as possible. Other commands need ten times the
processor time to start.
"""

from __future__ import annotations

import http.client
import json
import os
from http import HTTPStatus
from urllib.parse import urlsplit

import click

from ..errors import CommandFailed, Exit
from ..process.health_address import LOOPBACK, origin_of

SECONDS = 3.0
SERVE_PORT = 8000
"""Port of `memstream serve`, by default."""


@click.command()
@click.option("--host", help="Address to ask. [default: 127.0.0.1; without --port MEMSTREAM_HEALTH_HOST]")
@click.option("--port", type=click.IntRange(1, 65_535), help="Port to ask. [default: MEMSTREAM_HEALTH_PORT, or 8000]")
@click.option("--live", is_flag=True, help="Ask whether the process answers (/livez), not whether it is ready.")
@click.pass_context
def health(context: click.Context, host: str | None, port: int | None, live: bool) -> None:
    """Ask the worker or server of this machine whether it is ready. Exit 0: ready; 1: not ready; 3: no answer.

    It is the health check of a container, and never uses a proxy. For `serve`, give its port: --port 8000.
    """
    named, port = (LOOPBACK, port) if port is not None else _settings(context)
    origin = origin_of(named if host is None else host.strip("[]"), port)
    status, body = _ask(origin, "/livez" if live else "/readyz")
    if status != HTTPStatus.OK:
        raise CommandFailed(Exit.PARTLY, _why(status, body, origin))
    click.echo("alive" if live else "ready")


def _settings(context: click.Context) -> tuple[str, int]:
    """Return host and port of the health pages. A container sets both in its environment; reading all settings takes
    ten times as long."""
    host, port = os.environ.get("MEMSTREAM_HEALTH_HOST", ""), os.environ.get("MEMSTREAM_HEALTH_PORT", "")
    if host and port.isascii() and port.isdigit() and int(port):
        return host, int(port)
    from ..context import CommandContext

    settings = (context.find_object(CommandContext) or CommandContext()).settings
    return settings.health_host, settings.health_port or SERVE_PORT


def _ask(origin: str, path: str) -> tuple[int, bytes]:
    """Return status and body.

    http.client is used because it ignores proxies. A proxy would resolve a loopback address to the proxy's own machine.

    Raises CommandFailed (exit 3) without an answer.
    """
    connection = http.client.HTTPConnection(urlsplit(origin).netloc, timeout=SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        hint = "it may still be starting; check the port"
        raise CommandFailed(Exit.UNREACHABLE, f"{origin}{path}: {why} ({hint})") from error
    finally:
        connection.close()


def _why(status: int, body: bytes, origin: str) -> str:
    """Return one line for each part that is not ready."""
    try:
        parts = json.loads(body)["parts"]
        lines = [f"not ready: {name}: {part['why']}" for name, part in parts.items() if not part["ready"]]
    except (ValueError, LookupError, TypeError, AttributeError):
        lines = []
    return "\n".join(lines) or f"{origin} answers {status}, but is no memstream process"
