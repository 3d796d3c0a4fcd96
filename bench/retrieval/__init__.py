"""How well turns are found, on any conversations whose questions name their evidence: docs/notes/retrieval.md."""
