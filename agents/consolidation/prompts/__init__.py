"""Prompts of consolidation. Each module has a prompt and the schema of its answer."""
