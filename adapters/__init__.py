"""The outside world behind Protocols: vector stores, completions, embedders."""
