"""German: the locale pack (`pack.py`) and the other words of the language, as data."""
