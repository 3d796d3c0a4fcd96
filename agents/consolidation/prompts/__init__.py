"""The prompts of consolidation, each beside the model of its answer."""
