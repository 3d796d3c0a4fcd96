"""The read side of memory: searches, ranking across the tiers, and reads of stored records. It writes nothing."""
