"""Upkeep: consolidation, pruning, summaries, gists and budgets."""
