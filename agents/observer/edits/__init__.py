"""Edits by hand that the observer applies: one function a kind of command. Nothing is written here."""
