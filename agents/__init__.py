"""The stages: recorder, observer, reflector, consolidation. Each is one consumer group and reads as its data flows."""
