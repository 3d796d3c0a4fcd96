"""`memstream console`: serve the console to this machine, and open it in the browser."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from typing import Final

import click

from ...api.console.sign_in import PATH
from ..context import CommandContext, pass_context, run
from ..output import console
from ..wiring.command_runs import start_audit
from ..wiring.server import ServerParts, ServerPlan, listening, read_credentials, url_of

HOST: Final = "127.0.0.1"
SCREENS: Final = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""Variables that show that a browser can open a window. Without them, Python would start a browser for terminals."""


@click.command("console")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@pass_context
def open_console(context: CommandContext, port: int) -> None:
    """Open the console: pages that show why memory believes a fact, and change facts by hand.

    The command prints the address, opens it in the browser if there is a screen, and serves this machine only until
    Ctrl-C. With an embedded folder it runs the stages itself, or uses the process that holds the folder. A program uses
    `memstream serve`.
    """
    settings = context.settings
    start_audit(settings)
    credentials = read_credentials(settings, HOST)

    def began(parts: ServerParts) -> None:
        address = url_of(sockets) + PATH
        console.say(address)
        console.advice("Ctrl-C ends it" if _open(address) else "open this address in a browser; Ctrl-C ends it")

    with listening(HOST, port) as sockets:
        plan = ServerPlan(settings, context.policy, credentials)
        raise SystemExit(run(plan.run(sockets, began=began, name="console")))


def _open(address: str) -> bool:
    """Open the address in a browser. Return whether there is one."""
    if sys.platform == "linux" and not any(os.environ.get(name) for name in SCREENS):
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    threading.Thread(target=browser.open, args=(address,), daemon=True).start()  # it may wait for the browser's end
    return True
