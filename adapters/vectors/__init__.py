"""The vector store: one port, a remote Qdrant or the embedded engine behind it."""
