"""The order in which strategies run, and the processes that they run in: a comparison from its start to its end."""
