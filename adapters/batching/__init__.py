"""Batches of calls that concurrent events make."""
