"""The log of records: one port with two implementations, over Kafka and over a folder."""
