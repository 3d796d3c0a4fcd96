"""The engine on a Qdrant server."""
