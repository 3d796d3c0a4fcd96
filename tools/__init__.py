"""What people and agents do with memory: edits by command, and the tools of agents."""
