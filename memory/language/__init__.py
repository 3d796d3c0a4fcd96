"""Language: takes statements apart into claims, with locale packs."""
