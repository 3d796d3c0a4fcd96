"""The log of the settings. Apart from wiring.py, so that commands which need no Qdrant do not wait for its client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...streams.log.broker_url import kafka_servers
from ...streams.log.embedded import EmbeddedLog
from ...streams.log.port import Log
from ...streams.log.topic_admin import Deployment, create
from .settings import Settings

COMMAND_TIMEOUT = 10.0
"""Seconds that a command gives a server."""


def deployment(settings: Settings) -> Deployment:
    """What topic admin needs of the settings."""
    servers = None if settings.broker_folder is not None else ",".join(kafka_servers(settings.broker))
    return Deployment(partitions=settings.partition_count, replication=settings.replication, servers=servers)


def new_log(settings: Settings, *, timeout: float = COMMAND_TIMEOUT) -> Log:
    """The log of the settings, not started."""
    if settings.broker_folder is not None:
        return EmbeddedLog(folder=settings.broker_folder)
    from ...streams.log.kafka import KafkaLog  # only who uses it pays for it

    return KafkaLog(servers=kafka_servers(settings.broker), timeout=timeout)


@asynccontextmanager
async def opened_log(settings: Settings, *, make_topics: bool = True) -> AsyncIterator[Log]:
    """The log, started. In a folder the topics are made when they are missing: it is nobody else's to prepare."""
    log = new_log(settings)
    await log.start()
    try:
        if make_topics and settings.broker_folder is not None:
            await create(log, deployment=deployment(settings))
        yield log
    finally:
        await log.close()
