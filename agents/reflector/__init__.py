"""Reflector stage: the only writer of episodes and facts. Start at `stage.py`."""
