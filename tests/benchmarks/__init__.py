"""Benchmarks of Mapbench itself: ``python -m tests.benchmarks.NAME`` prints a table, each figure beside its limit.

They time things, so they want a machine that does nothing else; the test command does not run them.
"""
