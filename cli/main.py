"""The command `memstream`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from .. import __version__
from . import logs
from .commands import COMMANDS
from .context import CommandContext


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
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

    Settings come from MEMSTREAM_* variables and memstream.toml (docs/settings.md). With none of them everything runs
    in one folder, .memstream, with no server. Exit codes: 0 done, 1 partly or a check failed, 2 wrong usage or
    settings, 3 a server cannot be reached, 4 a broken invariant stopped the worker.
    """
    logs.configure(level=logging.DEBUG if verbose else logging.ERROR)
    context.obj = CommandContext(config)


for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """The entry point. A reader that went away (`memstream watch | head`) is no error."""
    try:
        cli()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()
