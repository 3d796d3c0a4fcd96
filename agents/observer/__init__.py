"""Observer stage: reads turns, writes observations and the working set. Start at stage.py."""
