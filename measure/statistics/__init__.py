"""Figures from samples, without a sentence."""
