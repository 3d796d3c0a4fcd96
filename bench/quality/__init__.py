"""How good the memory is that comes of talk: scripted dialogues through the real stages (docs/notes/quality.md)."""
