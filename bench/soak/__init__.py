"""Soak test: the whole pipeline under load for a long time, with seeded faults (docs/notes/soak.md)."""
