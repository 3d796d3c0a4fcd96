"""Rerankers that run in this process: late interaction and a cross-encoder. recall/llm_reranker.py has the reranker
that calls a chat model.
"""
