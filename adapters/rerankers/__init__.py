"""`Reranker` on this machine: a cross-encoder. The model as a judge is recall/judge.py: it is a prompt."""
