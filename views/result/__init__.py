"""A run as a person sees it: result, details, progress, and what can be done with it."""
