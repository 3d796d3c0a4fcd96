"""Indonesian: the words of the language, as data."""
