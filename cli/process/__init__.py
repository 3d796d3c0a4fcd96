"""The process of a command: signals, memory, input, start-up."""
