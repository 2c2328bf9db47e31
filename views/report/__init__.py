"""Runs as one page that stands alone."""
