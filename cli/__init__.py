"""The command line: the only room that builds settings and wires ports."""
