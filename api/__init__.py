"""memstream over HTTP: turns in, memory out."""
