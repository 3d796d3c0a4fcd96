"""Calls of concurrent events, gathered into batches."""
