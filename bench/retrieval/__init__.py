"""Quality of retrieval of turns, on conversations whose questions name their evidence (docs/notes/retrieval.md)."""
