"""The working set of a session, and the trigger of its observation."""
