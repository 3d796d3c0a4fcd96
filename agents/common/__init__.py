"""Parts that several stages share."""
