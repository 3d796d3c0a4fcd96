"""Senders of turns and commands to the log."""
