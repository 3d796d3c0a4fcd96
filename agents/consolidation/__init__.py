"""Consolidation: episodes become facts, with a model, through the reflector. `stage.py` reads as an event goes."""

from .stage import Consolidation

__all__ = ["Consolidation"]
