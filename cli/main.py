"""The command `memstream`."""

from __future__ import annotations

import difflib
import importlib
import logging
from pathlib import Path
from typing import Any

import click

from .. import __version__
from .context import CommandContext
from .output import logs

COMMANDS = {
    "demo": "The whole pipeline on one conversation, with no server and no key.",
    "chat": "Talk: each line is a turn, changes of facts appear as they come.",
    "worker": "Run stages: recorder, observer, reflector, consolidation, or all.",
    "serve": "Memory over HTTP: turns in, recall, facts, their changes as they come.",
    "tokens": "Make a token for `serve`.",
    "topics": "Make or compare the topics.",
    "produce": "Send turns from a file or standard input.",
    "watch": "Tail the changes of facts.",
    "show": "Show facts, episodes, the working set, or turns.",
    "recall": "Recall what memory has for a cue, ranked.",
    "rehydrate": "Show the words of an episode of which a gist is left.",
    "trace": "Show why a fact is believed.",
    "consolidate": "Make facts of a user's episodes now.",
    "prune": "Look through a user's facts for what should go.",
    "digest": "Write a user's digest anew.",
    "hygiene": "Cull what is over in a user's memory.",
    "flush": "Make episodes of what counts in a session's working set.",
    "compact": "Make an episode of a session's older turns.",
    "reflect": "Maintain a user's memory: prune, merge, strengthen, derive, compact.",
    "verify": "Check that nothing was lost, doubled or mixed up.",
    "tables": "Go on after a stage's table was lost.",
    "rebuild": "Fill Qdrant's facts from the log.",
    "dlq": "Look at dead letters.",
    "doctor": "Check what a worker needs, and say what to do.",
}
"""Name → one line for --help. The module is read when the command is used: Qdrant's client alone takes a second."""

UPKEEP = ("consolidate", "prune", "digest", "hygiene", "reflect", "flush", "compact")
MODULES = dict.fromkeys(UPKEEP, "upkeep")
"""Command → its module in commands/, where the two names differ."""


class LazyCommands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".commands.{MODULES.get(cmd_name, cmd_name)}", __package__)
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS:
            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"there is no command {args[0]}" + (f"; did you mean {close[0]}?" if close else ""))
        return super().resolve_command(ctx, args)


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="memstream")
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="TOML file with settings and the memory's policy. [default: memstream.toml, when it is there]",
)
@click.option("-v", "--verbose", is_flag=True, help="Say on stderr what is being done.")
@click.pass_context
def cli(context: click.Context, config: Path | None, verbose: bool) -> None:
    """Memory for chat services: turns in on Kafka, facts out, nothing lost.

    Settings come from MEMSTREAM_* variables and memstream.toml (docs/reference/settings.md). With none of them
    everything runs in one folder, .memstream, with no server. Exit codes: 0 done, 1 partly or a check failed, 2 wrong
    usage or settings, 3 a server cannot be reached, 4 a broken invariant stopped the worker.
    """
    logs.configure(level=logging.DEBUG if verbose else logging.ERROR)
    context.obj = CommandContext(config)


if __name__ == "__main__":
    cli(prog_name="memstream")
