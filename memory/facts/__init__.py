"""Facts: how statements become facts, how they meet known facts, and how facts change."""
