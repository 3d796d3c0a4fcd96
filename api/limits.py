"""Limits of the HTTP server. The limits of a turn and of a read are in their contracts."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in bytes, seconds and counts."""

    body: int = 4 * 1024 * KIB
    """Bytes of a request's body, both as sent and decompressed. The body is kept in memory while it is read."""
    turns: int = 100
    """Turns in one request."""
    header: int = 64 * KIB
    """Bytes of a request's first line and headers. A percent-encoded cue of 2 000 characters fits."""
    requests: int = 128
    """Concurrent requests, without event streams. A request already counts while the client sends its body."""
    requests_per_tenant: int = 64
    """Limit for one tenant. It applies only with a token file."""
    requests_per_token: int = 48
    """Limit for one token. It applies only with a token file."""
    commands: int = 24
    """Requests that wait for the result of a command: edits, reviews, reflect, tools that write. Each of them has its
    own reader of the log."""
    commands_per_tenant: int = 12
    """Limit for one tenant. It applies only with a token file."""
    commands_per_token: int = 8
    """Limit for one token. It applies only with a token file."""
    connections: int = 1_024
    """Open connections, including streams. A further connection closes the connection that has waited longest for a
    request."""
    connections_per_address: int = 256
    """Open connections of one address. A further connection closes the address's connection that has waited longest."""
    header_seconds: float = 10.0
    """Time from the start of a connection, or of a request on it, to the end of the request's headers."""
    request_seconds: float = 30.0
    """Time from a request's first byte to the start of its answer."""
    idle_seconds: float = 75.0
    """Time that a connection without a request stays open. MEMSTREAM_KEEP_ALIVE_TIMEOUT sets it."""
    retry_seconds: int = 2
    """Time in Retry-After when the server is busy, or the log or the store does not answer."""
    streams: int = 64
    """Concurrent event streams, including streams of `/mcp`."""
    streams_per_tenant: int = 32
    """Limit for one tenant. It applies only with a token file."""
    streams_per_token: int = 24
    """Limit for one token. It applies only with a token file."""
    catching_up: int = 8
    """Streams that still read older events. Each of them has its own reader of the log."""
    catching_up_per_tenant: int = 4
    """Limit for one tenant. It applies only with a token file."""
    catching_up_per_token: int = 3
    """Limit for one token. It applies only with a token file."""
    place_seconds: float = 5.0
    """Time that a tenant waits for a free place if it has fewer places than an equal share."""
    stream_events: int = 1_000
    """Events that wait for one slow reader. With one more event, the server ends the stream."""
    stream_send_seconds: float = 30.0
    """Time limit for sending one event. After it the server ends the stream."""
    heartbeat_seconds: float = 15.0
    """Time between two heartbeats on an idle stream."""
    drain_seconds: float = 20.0
    """Time that a stopping server waits for running requests."""
