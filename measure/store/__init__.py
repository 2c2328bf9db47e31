"""Runs that last, and run files from elsewhere."""
