"""Edits by hand that the reflector applies: one function a kind of command. Nothing is written here."""
