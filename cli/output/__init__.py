"""What commands print, and where logs go."""
