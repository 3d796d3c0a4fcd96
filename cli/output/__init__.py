"""Output of commands and configuration of logs."""
