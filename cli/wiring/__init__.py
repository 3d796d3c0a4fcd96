"""Composition root: settings, ports, stages and servers."""
