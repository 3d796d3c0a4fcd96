"""The log: one port, over Kafka or over a folder."""
