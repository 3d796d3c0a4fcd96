"""Entry point of the command `memstream`.

It imports the command line inside `main`: a light installation has none of its packages, and then one line says so.
"""

from __future__ import annotations

import os
import sys

from .process.garbage_collection import collection_paused

OWNER_ONLY = 0o077
"""Mask of file modes: what the command writes holds people's memory, so only its owner may read it."""


def main() -> None:
    """Run the command line, or name the extra of the package that it needs."""
    os.umask(OWNER_ONLY)
    try:
        if sys.argv[1:2] == ["health"]:  # it runs every few seconds, and needs no other command
            from .commands.health import health

            health(sys.argv[2:], prog_name="memstream health")
        with collection_paused():
            from .main import cli

        cli(prog_name="memstream")
    except ModuleNotFoundError as error:
        if (error.name or "memstream").partition(".")[0] == "memstream":
            raise
        print(f"memstream: the command needs {error.name}: pip install 'memstream[server]'", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:  # before the command has begun; `cli` handles it afterwards
        print("memstream: stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
