"""What one server takes, at most. Every bound of the HTTP interface stands here (and those of a turn and of a read in
their contracts)."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes, seconds, counts."""

    body: int = 4 * 1024 * KIB
    """Bytes of a request's body, held while it is read."""
    turns: int = 100
    """Turns of one request."""
    header: int = 64 * KIB
    """Bytes of a request's line and headers: a cue of 2 000 characters, percent-encoded, fits."""
    requests: int = 128
    """Requests at work at once, streams of events not counted."""
    commands: int = 8
    """Requests that wait for what a command did: each has a reader of the log of its own."""
    connections: int = 1_024
    """Open connections, streams among them."""
    request_seconds: float = 30.0
    """From a request's first byte to the beginning of its answer."""
    idle_seconds: float = 30.0
    """A connection without a request."""
    retry_seconds: int = 2
    """What a client is asked to wait when something is busy or away."""
    streams: int = 64
    """Streams of events at once."""
    catching_up: int = 8
    """Of these, so many that still read what lies behind: each has a reader of the log of its own."""
    stream_events: int = 1_000
    """Events that wait for one slow reader; with one more it is cut off."""
    stream_send_seconds: float = 30.0
    """For one event to leave; then the reader is taken for gone."""
    heartbeat_seconds: float = 15.0
    drain_seconds: float = 20.0
    """At a stop, for what is at work."""
