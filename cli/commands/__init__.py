"""The commands. Each module has one command, or several related commands."""
