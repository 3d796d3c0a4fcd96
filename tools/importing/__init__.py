"""Import of exported memory: from lines of an export to commands and turns on the log (docs/design/import.md)."""
