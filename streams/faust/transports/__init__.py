"""Faust's transports: a Kafka broker, or a log on disk."""
