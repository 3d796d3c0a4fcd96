"""memstream: event-driven memory for chat services (the repository's root is this package; see docs/design/layout.md)."""

__version__ = "0.1.0"
