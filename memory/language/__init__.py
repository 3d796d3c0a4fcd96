"""Language: parses statements into claims, with locale packs."""
