"""memstream: event-driven memory for chat services. The repository's root is this package: docs/design/layout.md."""

__version__ = "0.4.0"
