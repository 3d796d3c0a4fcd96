"""Export of memory: every record of an owner or a tenant, as of one moment (docs/design/export.md)."""
