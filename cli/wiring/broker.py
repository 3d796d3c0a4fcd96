"""Construction of the log. The module is separate from ports.py, so that commands without Qdrant do not import its
client library."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ...streams.log.broker_url import kafka_servers
from ...streams.log.embedded import EmbeddedLog
from ...streams.log.port import Log
from ...streams.log.sqlite_tables import FILE as LOG_FILE
from ...streams.log.topic_admin import Deployment, create
from ..errors import usage
from .settings import Settings

ENGINE_FOLDER = "qdrant"
COMMAND_TIMEOUT = 10.0
"""Time limit for the answer of a server, in seconds."""


def deployment(settings: Settings) -> Deployment:
    """Return the part of the settings that topic_admin needs."""
    servers = None if settings.broker_folder is not None else ",".join(kafka_servers(settings.broker))
    return Deployment(partitions=settings.partition_count, replication=settings.replication, servers=servers)


def new_log(settings: Settings, *, timeout: float = COMMAND_TIMEOUT) -> Log:
    """Return the log that the settings name, not started."""
    if settings.broker_folder is not None:
        return EmbeddedLog(folder=settings.broker_folder)
    from ...streams.log.kafka import KafkaLog  # slow to import, and not needed for an embedded log

    return KafkaLog(servers=kafka_servers(settings.broker), security=settings.kafka_security, timeout=timeout)


def has_memory(folder: Path) -> bool:
    """Return whether the folder has a log or a Qdrant engine."""
    return (folder / LOG_FILE).exists() or (folder / ENGINE_FOLDER).exists()


def require_memory(*folders: Path | None) -> None:
    """Raise CommandFailed (exit 2) for a folder without memory. None stands for a server."""
    for folder in folders:
        if folder is not None and not has_memory(folder):
            raise usage(
                f"{folder} holds no memory, and reading creates none. Create it with `memstream demo`, `chat` or "
                "`worker`, or set MEMSTREAM_DATADIR to another folder"
            )


def check_access(folder: Path) -> None:
    """Check that this process may write into a folder, or create it, and use the log in it. Raises OSError."""
    above = next(each for each in (folder, *folder.parents) if _exists(each))
    os.listdir(above)  # fails for a file, or for a folder without read permission
    for path in (above, *(each for each in (folder / LOG_FILE,) if _exists(each))):
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _exists(path: Path) -> bool:
    """Return whether a path exists. Unlike `Path.exists`, raise OSError for a symlink loop or an overlong name."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


@asynccontextmanager
async def opened_log(settings: Settings, *, make_topics: bool = True) -> AsyncIterator[Log]:
    """Open the log. In an embedded folder, create missing topics, because no operator creates them.

    Raises OSError for a folder that this process cannot use.
    """
    if settings.broker_folder is not None:
        check_access(settings.broker_folder)
    log = new_log(settings)
    await log.start()
    try:
        if make_topics and settings.broker_folder is not None:
            await create(log, deployment=deployment(settings))
        yield log
    finally:
        await log.close()
