"""Operating-system account that runs a command, for the audit log."""

from __future__ import annotations

import getpass
import os


def account() -> str:
    """Return the name of the account, or its uid if it has no name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a uid without a name
        return str(os.getuid())
