"""Who runs when, and in which process: a comparison from its start to its end."""
