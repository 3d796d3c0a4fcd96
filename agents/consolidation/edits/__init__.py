"""Edits by hand that consolidation applies: one function a kind of command. Nothing is written here."""
