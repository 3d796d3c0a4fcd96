"""Quality of the retrieval of turns, on conversations with questions and evidence (docs/notes/retrieval.md)."""
