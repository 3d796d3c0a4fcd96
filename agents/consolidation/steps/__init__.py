"""The steps of a consolidation run, one module per step."""
