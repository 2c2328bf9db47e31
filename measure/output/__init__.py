"""A run as a table, a CSV file, Markdown or pictures."""
