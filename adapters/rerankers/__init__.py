"""Rerankers on this machine: late interaction and a cross-encoder. The one that asks a chat model is
recall/llm_reranker.py.
"""
