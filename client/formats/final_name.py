"""Final name of a complete file. An existing file is never overwritten."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

_NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def check_free(target: Path) -> None:
    """Raises FileExistsError."""
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "exists; name another one", os.fspath(target))


def give_final_name(part: Path, target: Path) -> None:
    """Rename a complete file or folder. Raises FileExistsError."""
    check_free(target)
    if part.is_dir():
        part.rename(target)
        return
    try:
        os.link(part, target)  # unlike a rename, a link never replaces a file
        part.unlink()
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        part.rename(target)
