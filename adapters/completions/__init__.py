"""Chat completions: any OpenAI-compatible server, or the rule-based offline model."""
