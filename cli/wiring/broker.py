"""The log of the settings. It is apart from ports.py, so that commands without Qdrant do not import its client."""

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
"""Seconds that a command waits for a server."""


def deployment(settings: Settings) -> Deployment:
    """Return the part of the settings that topic_admin needs."""
    servers = None if settings.broker_folder is not None else ",".join(kafka_servers(settings.broker))
    return Deployment(partitions=settings.partition_count, replication=settings.replication, servers=servers)


def new_log(settings: Settings, *, timeout: float = COMMAND_TIMEOUT) -> Log:
    """Make the log of the settings, not started."""
    if settings.broker_folder is not None:
        return EmbeddedLog(folder=settings.broker_folder)
    from ...streams.log.kafka import KafkaLog  # slow to import, and not needed in a folder

    return KafkaLog(servers=kafka_servers(settings.broker), timeout=timeout)


def has_memory(folder: Path) -> bool:
    """Whether memstream has written to this folder: it holds a log, an engine, or both."""
    return (folder / LOG_FILE).exists() or (folder / ENGINE_FOLDER).exists()


def require_memory(*folders: Path | None) -> None:
    """Refuse (exit 2) to read a folder that holds no memory. None is a server."""
    for folder in folders:
        if folder is not None and not has_memory(folder):
            raise usage(
                f"{folder} holds no memory; reading creates none. `memstream demo`, `chat` and `worker` create one; "
                "MEMSTREAM_DATADIR names another folder"
            )


def check_access(folder: Path) -> None:
    """Check that this process may write into a folder, or create it, and use the log in it. Raises OSError."""
    above = next(each for each in (folder, *folder.parents) if _exists(each))
    os.listdir(above)  # a file, or a folder that cannot be read
    for path in (above, *(each for each in (folder / LOG_FILE,) if _exists(each))):
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _exists(path: Path) -> bool:
    """Return whether a path exists. Unlike `Path.exists`, raises OSError for a loop or a name that is too long."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


@asynccontextmanager
async def opened_log(settings: Settings, *, make_topics: bool = True) -> AsyncIterator[Log]:
    """Open the log. In a folder, missing topics are created: nobody else prepares a folder. Raises OSError for a
    folder that this process cannot use."""
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
