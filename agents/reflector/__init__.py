"""The reflector: the only writer of episodes and facts. `stage.py` reads as an event goes."""

from .stage import Reflector

__all__ = ["Reflector"]
