"""End of a command: every error becomes one line on standard error and an exit code, never a traceback."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from asyncio import CancelledError
from collections.abc import Callable
from typing import Final

import click
import structlog

from ...schemas.base import describe
from ...schemas.errors import StageError
from ..errors import CommandFailed, Exit, failed, usage
from .standard_streams import OutputLost, writable_streams

log = structlog.get_logger(__name__)
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REMEDIES: Final = {
    errno.EACCES: "give this process (uid {uid}) access to it, or name another path",
    errno.EPERM: "give this process (uid {uid}) access to it, or name another path",
    errno.EROFS: "name a path on a file system that can be written",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "raise the limit of open files of this machine",
    **dict.fromkeys(_FULL, "free some space on its disk, or raise the quota; nothing is lost"),
}


def ended(command: Callable[[], object]) -> int:
    """Run a command and return its exit code."""
    code = int(Exit.DONE)
    with writable_streams():
        try:
            result = command()
            sys.stdout.flush()
            code = result if isinstance(result, int) else code
        except SystemExit as end:
            code = _code(end)
        except (Exception, BaseExceptionGroup, KeyboardInterrupt, CancelledError) as error:  # noqa: BLE001
            code = _shown(_first(error))
    return code


def _code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _first(error: BaseException) -> BaseException:
    """Return the error that ended the command.

    For a group of errors, this is the first error. If an OutputLost or a KeyboardInterrupt caused this error, return
    the cause instead.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, OutputLost | KeyboardInterrupt):
            return behind
        behind = behind.__cause__
    return error


def _shown(error: BaseException) -> int:
    """Print an error as one line on standard error, and return the exit code."""
    match error:
        case KeyboardInterrupt() | click.Abort():
            print("memstream: stopped", file=sys.stderr)
            return Exit.STOPPED
        case OutputLost():
            if not error.broken_pipe:
                print(f"memstream: standard output cannot be written: {error}", file=sys.stderr)
            return Exit.PARTLY
        case click.ClickException():
            shown = error
        case StageError():
            shown = failed(error)
        case OSError():
            shown = unusable(error)
        case _:
            if structlog.is_configured():
                log.debug("unexpected_error", where="".join(traceback.format_tb(error.__traceback__)))
            shown = CommandFailed(Exit.BROKEN, f"unexpected error, `memstream -v …` shows where: {describe(error)}")
    shown.show(file=sys.stderr)
    return shown.exit_code


def unusable(error: OSError) -> CommandFailed:
    """Return the CommandFailed for a file or folder that the system refuses: exit 3 on a full disk, else exit 2."""
    what = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    if not what and error.errno == errno.ENOENT and not _has_working_folder():
        return usage("the working directory no longer exists: change to another one")
    remedy = _REMEDIES.get(error.errno or 0, "").format(uid=os.getuid())
    line = f"{what}{error.strerror or error}{f' ({remedy})' if remedy else ''}"
    return CommandFailed(Exit.UNREACHABLE, line) if error.errno in _FULL else usage(line)


def _has_working_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True
