"""Rerankers on this machine: a cross-encoder. The reranker that asks a chat model is recall/llm_reranker.py."""
