"""Process-level parts of commands: signals, memory, input, start-up."""
