"""The engine of every stage: handler, lanes, retries, dead letters."""
