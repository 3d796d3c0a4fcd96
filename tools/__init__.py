"""Edits of memory, which are sent as commands, and the tools of agents."""
