"""The observer: turns in, observations and the working set out. Read stage.py from top to bottom."""
