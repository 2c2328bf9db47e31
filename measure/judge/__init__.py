"""Sentences and verdicts from figures."""
