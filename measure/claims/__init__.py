"""Trying claims: everything that they need is measured, one after the other, into one run."""
