"""Erasure of a user: the run, the scan, and the receipt (docs/design/erasure.md)."""
