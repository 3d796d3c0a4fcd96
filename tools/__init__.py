"""Edits of memory by command, and the tools of agents."""
