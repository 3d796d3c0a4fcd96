"""The log behind an address, for tests and bench programs."""

from __future__ import annotations

from memstream.streams.log.broker_url import embedded_folder, is_embedded, kafka_servers
from memstream.streams.log.embedded import EmbeddedLog
from memstream.streams.log.kafka import TIMEOUT, KafkaLog
from memstream.streams.log.port import Log


def log_at(address: str, *, timeout: float = TIMEOUT, client_id: str = "memstream") -> Log:
    """Return the log of MEMSTREAM_BROKER's form (`kafka://…`, `embedded://…`), not started yet."""
    if is_embedded(address):
        return EmbeddedLog(folder=embedded_folder(address))
    return KafkaLog(servers=kafka_servers(address), timeout=timeout, client_id=client_id)
