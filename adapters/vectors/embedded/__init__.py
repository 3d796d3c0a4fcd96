"""The embedded engine: Qdrant's own engine in this process, and its server for other processes."""
