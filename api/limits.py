"""Every limit of the HTTP server. The limits of a turn and of a read are in their contracts."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in bytes, seconds and counts."""

    body: int = 4 * 1024 * KIB
    """Bytes of a request's body, as it is sent and inflated. It is held in memory while it is read."""
    turns: int = 100
    """Turns in one request."""
    header: int = 64 * KIB
    """Bytes of a request's line and headers. A percent-encoded cue of 2 000 characters fits."""
    requests: int = 128
    """Requests in work at once, without streams of events. A body that is being sent counts."""
    requests_per_tenant: int = 64
    """Limit of one tenant, with a file of tokens."""
    requests_per_token: int = 48
    """Limit of one token, with a file of tokens."""
    commands: int = 24
    """Requests that wait for the result of a command: edits, reviews, reflect, tools that write. Each of them has its
    own reader of the log."""
    commands_per_tenant: int = 12
    """Limit of one tenant, with a file of tokens."""
    commands_per_token: int = 8
    """Limit of one token, with a file of tokens."""
    connections: int = 1_024
    """Open connections, streams included. With one more, the connection that has waited longest for a request is
    closed."""
    connections_per_address: int = 256
    """Open connections of one address. With one more, that address's connection that has waited longest is closed."""
    header_seconds: float = 10.0
    """Time from the beginning of a connection, or of a request on it, to the end of the request's headers."""
    request_seconds: float = 30.0
    """Time from a request's first byte to the beginning of its answer."""
    idle_seconds: float = 75.0
    """How long a connection without a request stays open. MEMSTREAM_KEEP_ALIVE_TIMEOUT sets it."""
    retry_seconds: int = 2
    """How long a client is asked to wait when something is busy or does not answer."""
    streams: int = 64
    """Streams of events at once, those of `/mcp` included."""
    streams_per_tenant: int = 32
    """Limit of one tenant, with a file of tokens."""
    streams_per_token: int = 24
    """Limit of one token, with a file of tokens."""
    catching_up: int = 8
    """Streams that may still read older events. Each of them has its own reader of the log."""
    catching_up_per_tenant: int = 4
    """Limit of one tenant, with a file of tokens."""
    catching_up_per_token: int = 3
    """Limit of one token, with a file of tokens."""
    place_seconds: float = 5.0
    """How long a tenant with less than an equal share waits for a place where all are taken."""
    stream_events: int = 1_000
    """Events that wait for one slow reader. With one more, the server ends that stream."""
    stream_send_seconds: float = 30.0
    """How long one event may take to leave. After that the server ends the stream."""
    heartbeat_seconds: float = 15.0
    drain_seconds: float = 20.0
    """How long a stopping server waits for the requests in work."""
