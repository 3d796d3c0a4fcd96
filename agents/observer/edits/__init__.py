"""Manual edits that the observer applies, one function per kind of command. The functions write nothing."""
