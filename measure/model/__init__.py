"""What is asked for and what was measured, as data."""
