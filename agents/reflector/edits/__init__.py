"""Manual edits that the reflector applies, one function per kind of command. The functions write nothing."""
