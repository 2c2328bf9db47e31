"""Pages, each read from top to bottom."""
