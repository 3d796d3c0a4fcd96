"""The read side of memory: search, ranking across the tiers, reads of stored records. It never writes to the store."""
