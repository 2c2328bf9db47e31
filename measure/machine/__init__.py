"""The machine that measures, and who else uses it."""
