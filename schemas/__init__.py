"""Contracts of the records on topics and in the store (docs/reference/records.md)."""
