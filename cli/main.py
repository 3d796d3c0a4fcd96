"""The command `memstream`."""

from __future__ import annotations

import difflib
import importlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from .. import __version__
from ..adapters.lean_imports import FASTEMBED, deferred_models, hidden_package
from .context import CommandContext
from .output import logs
from .process.command_end import ended
from .process.garbage_collection import collection_paused

COMMANDS = {
    "demo": "Run the whole pipeline on one conversation, without a server or a key.",
    "chat": "Talk to memory: each line is a turn, and changes of facts appear as they happen.",
    "worker": "Run stages: recorder, observer, reflector, consolidation, or all.",
    "serve": "Serve memory over HTTP: accept turns, answer recall, stream changes of facts.",
    "console": "Open pages that show why memory believes a fact, in the browser.",
    "mcp": "Serve memory to one agent over MCP on standard input and output.",
    "tokens": "Create, list and revoke bearer tokens of `serve`.",
    "topics": "Create the topics, compare them with the catalogue, or increase their partition count.",
    "produce": "Send turns from a file or standard input.",
    "watch": "Print changes of facts as they happen.",
    "show": "Show facts, episodes, the working set, the digest, or turns.",
    "recall": "Recall memory for a cue, best item first.",
    "profile": "Show the current values of a user's slots: employer, residence, likes …",
    "rehydrate": "Show the original text of an episode that was reduced to a gist.",
    "trace": "Show why memory believes a fact, or what memory learnt from a turn.",
    "remember": "Remember a statement.",
    "forget": "Forget a fact or an episode.",
    "retract": "Take a turn back, with everything that memory learnt from it.",
    "edit": "Reword a fact or an episode, or change its tags.",
    "supersede": "Replace a fact with a new one.",
    "merge": "Merge facts, or episodes, into one.",
    "pin": "Pin a fact, or an entry of a session's working set.",
    "unpin": "Unpin a fact, or an entry of a session's working set.",
    "block": "Edit blocks: short named texts that are part of an agent's prompt.",
    "task": "Add, list and complete tasks with reminders.",
    "procedure": "Define, list and activate procedures: instructions in steps.",
    "group": "Share memory among users and agents.",
    "approve": "Approve a quarantined or pending fact.",
    "reject": "Reject a quarantined or pending fact.",
    "consolidate": "Derive facts from a user's episodes now.",
    "prune": "Prune a user's facts.",
    "digest": "Rewrite a user's digest.",
    "hygiene": "Delete expired and faded records of a user.",
    "flush": "Turn important entries of a session's working set into episodes.",
    "compact": "Summarise a session's older turns in an episode.",
    "reflect": "Maintain a user's memory: prune, merge, strengthen, derive, compact.",
    "verify": "Check that no record was lost, duplicated or mixed up.",
    "audit": "Print the audit trail: who did what, and when.",
    "policies": "Show, check and set the policies of tenants.",
    "export": "Write every record of a user or a tenant to a file.",
    "erase": "Erase a user: everything that memory has of them, for ever.",
    "import": "Restore the memory of an export.",
    "tables": "Continue after a stage lost part of its table.",
    "rebuild": "Rebuild the facts in Qdrant from the log.",
    "migrate-embedder": "Embed the stored memory again with another embedder.",
    "dlq": "List and show dead letters, and put them back on their topics.",
    "health": "Ask the worker or server of this machine whether it is ready.",
    "doctor": "Check everything that a worker needs, and suggest repairs.",
}
"""The line in --help of each command. The lines are here, because --help must not import the modules of the commands:
the import of Qdrant's client alone takes a second."""

UPKEEP = ("consolidate", "prune", "digest", "hygiene", "reflect", "flush", "compact")
REVIEW = ("approve", "reject")
EDITS = ("remember", "forget", "retract", "edit", "supersede", "merge")
HELD = ("pin", "unpin", "block", "task", "procedure", "group")
MODULES = {
    **dict.fromkeys(UPKEEP, "upkeep"),
    **dict.fromkeys(REVIEW, "review"),
    **dict.fromkeys(EDITS, "edit"),
    **dict.fromkeys(HELD, "held"),
    "import": "import_memory",
    "migrate-embedder": "migrate_embedder",
}
"""The module in commands/ of each command, if module and command have different names."""
FUNCTIONS = {"import": "import_memory", "console": "open_console", "migrate-embedder": "migrate_embedder"}
"""The function of each command, if function and command have different names."""


class LazyCommands(click.Group):
    """Group that imports the module of a command when the command is used. It converts the result or the error of the
    command into an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line and exit. Without `standalone_mode`, return the result and let errors propagate."""

        def command() -> object:
            return super(LazyCommands, self).main(args, prog_name, complete_var, standalone_mode=False, **extra)

        if not standalone_mode:
            return command()
        sys.exit(ended(command))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with collection_paused(), hidden_package(FASTEMBED), deferred_models("qdrant_client"):
            module = importlib.import_module(f".commands.{MODULES.get(cmd_name, cmd_name)}", __package__)
        command: click.Command = getattr(module, FUNCTIONS.get(cmd_name, cmd_name))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS:
            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"unknown command {args[0]}" + (f"; did you mean {close[0]}?" if close else ""))
        return super().resolve_command(ctx, args)


@click.group(cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="memstream")
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="TOML file with settings and policy. [default: memstream.toml, if it exists]",
)
@click.option("-v", "--verbose", is_flag=True, help="Log each step on stderr.")
@click.pass_context
def cli(context: click.Context, config: Path | None, verbose: bool) -> None:
    """Memory for chat services: read turns from Kafka and write facts.

    Settings come from MEMSTREAM_* variables and memstream.toml (docs/reference/settings.md). Without settings,
    everything runs in one folder, .memstream, and needs no server. Exit codes: 0 done; 1 partly done, or a check
    failed; 2 wrong usage or settings; 3 a server cannot be reached; 4 a broken invariant stopped the worker.
    """
    logs.configure(level=logging.DEBUG if verbose else logging.ERROR)
    context.obj = CommandContext(config)


if __name__ == "__main__":
    cli(prog_name="memstream")
