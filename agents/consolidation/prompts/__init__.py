"""Prompts of consolidation. Each module has a prompt and the model of its answer."""
