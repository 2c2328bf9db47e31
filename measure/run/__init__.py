"""Requests and runs as data: the question that a person asks, and the measurements that answer it."""
