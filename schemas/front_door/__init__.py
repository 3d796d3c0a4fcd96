"""Front door: it converts turns in common formats into the contract `Turn` once. See docs/design/front-door.md."""
