"""The recorder: stores every turn and its messages."""
