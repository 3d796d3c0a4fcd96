"""The contracts: records on topics and records in the store (docs/reference/records.md)."""
