"""Dead letters and parked keys: pages of them, and redrive (docs/design/dead-letters.md)."""
