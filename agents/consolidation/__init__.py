"""Consolidation: episodes become facts, by a model and through the reflector. `stage.py` shows the way of an event."""
