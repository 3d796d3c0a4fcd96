"""The composition root: settings, ports, stages and servers."""
