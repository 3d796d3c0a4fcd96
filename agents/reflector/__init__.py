"""The reflector: the only writer of episodes and facts. `stage.py` shows the way of an event."""

from .stage import Reflector

__all__ = ["Reflector"]
