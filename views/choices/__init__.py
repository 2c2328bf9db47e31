"""Widgets in which a person chooses what to measure."""
