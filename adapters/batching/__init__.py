"""Batching of calls from concurrent events."""
