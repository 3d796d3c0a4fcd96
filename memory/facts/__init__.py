"""Facts: how statements become facts, how they are compared with known facts, and how facts change."""
