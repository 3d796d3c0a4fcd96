"""The read side of memory: search, ranking across the tiers, and reads of stored records. It writes nothing."""
