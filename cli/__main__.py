"""Entry point of the command `memstream`.

`main` imports the command line only when it runs. Without the extra `server`, packages are missing; `main` then prints
one line instead of a traceback.
"""

from __future__ import annotations

import os
import sys

from .process.garbage_collection import collection_paused

OWNER_ONLY = 0o077
"""Umask: files that a command writes contain personal data, so only their owner may read them."""


def main() -> None:
    """Run the command line. If a package is missing, print which extra installs it."""
    os.umask(OWNER_ONLY)
    try:
        if sys.argv[1:2] == ["health"]:  # runs every few seconds, so it skips the import of the command line
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
    except KeyboardInterrupt:  # Ctrl-C during the import; `cli` handles a later Ctrl-C
        print("memstream: stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
