"""Collections that are partitioned by period."""
