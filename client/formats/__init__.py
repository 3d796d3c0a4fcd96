"""Files of an export besides NDJSON and JSON: a SQLite database, and folders of Markdown notes. Each is a function of
the lines of an export (docs/reference/export.md)."""
