"""The code that runs inside a measured process."""
