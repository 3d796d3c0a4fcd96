"""Manual edits that consolidation applies, one function per kind of command. The functions write nothing."""
