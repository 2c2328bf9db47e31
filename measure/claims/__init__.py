"""Sentences about mapping, as data, with verdicts that are computed from measured figures."""
