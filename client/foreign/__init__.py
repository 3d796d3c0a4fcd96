"""Readers of the files of other memories. Each converts an item of its file to lines of an import."""
