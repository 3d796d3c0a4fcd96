"""The front door: turns as the world sends them, read into the contract `Turn` once. See docs/design/front-door.md."""
