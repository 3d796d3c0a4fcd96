"""Ports to the outside world and their implementations: vector stores, completions, embedders, rerankers."""
