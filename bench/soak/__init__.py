"""The whole pipeline under load for a long time, while things break by a seed (docs/notes/soak.md)."""
