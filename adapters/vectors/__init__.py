"""The vector store: one port, with a remote Qdrant or the embedded engine behind it."""
