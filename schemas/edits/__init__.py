"""Edits of memory by hand: the arguments and results of their commands, one module for each tier."""
