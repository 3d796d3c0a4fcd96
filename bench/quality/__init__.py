"""Quality of the memory that results from scripted dialogues through the real stages (docs/notes/quality.md)."""
