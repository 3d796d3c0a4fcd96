"""Consolidation stage: turns episodes into facts with a model. The reflector writes the facts. Start at `stage.py`."""
