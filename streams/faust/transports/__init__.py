"""Where events come from: a Kafka broker, or a log on disk."""
