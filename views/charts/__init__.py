"""Charts as pure functions from data to a specification, one file a chart."""
