"""Text embedders: OpenAI-compatible, fastembed, hashing."""
