"""Language: statements taken apart into claims, with locale packs."""
