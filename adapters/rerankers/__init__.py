"""`Reranker` on this machine: a cross-encoder. The model as a judge is recall/llm_reranker.py: it is a prompt."""
