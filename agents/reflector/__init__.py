"""The reflector: the only writer of episodes and facts. `stage.py` shows the way of an event."""
