"""Parsing of MEMSTREAM_BROKER: `kafka://host:port[,host:port]` or `embedded:///folder`."""

from __future__ import annotations

from pathlib import Path

from ...schemas.errors import Fatal

KAFKA = "kafka://"
EMBEDDED = "embedded://"
DEFAULT_PORT = 9092
NO_CREDENTIALS = "credentials are not supported"


def is_embedded(broker: str) -> bool:
    """Return whether a broker address is embedded (the log on disk).

    Raises `Fatal` for an unknown kind of address, and for an address with credentials. The message never contains the
    credentials.
    """
    if broker.startswith(EMBEDDED):
        return True
    if "@" in broker:
        raise Fatal(
            f"MEMSTREAM_BROKER: {NO_CREDENTIALS} in an address: write kafka://host:port[,host:port], and set "
            "MEMSTREAM_KAFKA_SASL_USERNAME and MEMSTREAM_KAFKA_SASL_PASSWORD"
        )
    if broker.startswith(KAFKA):
        return False
    raise Fatal(f"MEMSTREAM_BROKER={broker!r}: expected kafka://host:port[,host:port] or embedded:///folder")


def embedded_folder(broker: str) -> Path:
    """Return the folder of an embedded address. Raises `Fatal` when its path is not absolute."""
    folder = broker.removeprefix(EMBEDDED)
    if not is_embedded(broker) or not folder.startswith("/"):
        raise Fatal(f"MEMSTREAM_BROKER={broker!r}: expected embedded:///folder with an absolute path")
    return Path(folder)


def kafka_servers(broker: str) -> tuple[str, ...]:
    """Return `host:port` of each server of a Kafka address. Raises `Fatal` for any other address."""
    if is_embedded(broker):
        raise Fatal(f"MEMSTREAM_BROKER={broker!r} is not a Kafka address")
    servers = []
    for part in broker.removeprefix(KAFKA).rstrip("/").split(","):
        host, colon, port = part.strip().rpartition(":")
        if not colon or part.endswith("]"):  # no port; an IPv6 address without a port ends with "]"
            host, port = part.strip(), str(DEFAULT_PORT)
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise Fatal(f"MEMSTREAM_BROKER={broker!r}: {part!r} is not host:port")
        servers.append(f"{host}:{port}")
    return tuple(servers)
