"""The base of every stage: engine (lanes, handler, errors), log (Kafka or a folder) and Faust."""
