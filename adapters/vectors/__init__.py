"""Vector store: one port for a remote Qdrant and for the embedded engine."""
