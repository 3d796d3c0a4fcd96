"""HTTP interface of memstream."""
