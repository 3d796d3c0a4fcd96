"""The working set of a session, and when to observe."""
