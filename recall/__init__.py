"""The read side: what is remembered, ranked across the tiers. Nothing is written here."""
