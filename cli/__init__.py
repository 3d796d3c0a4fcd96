"""The command line: the only place that builds settings and wires ports."""
